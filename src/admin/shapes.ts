/**
 * From what the flows know to what goes over the wire.
 *
 * @module
 */
import type * as Wire from './api-types.ts'
import type { LinkExplanation } from './link-explanation.ts'
import type { MailOutcome } from './mail-outcome.ts'
import type { StatedLink, UserStatus } from './user-status.ts'
import type { CheckedStep, MailJobStatus, RecordedEvent, TokenHistory } from '../ports/index.ts'

export function toReport(checks: CheckedStep<string>[]): Wire.CheckReport {
  return { ok: checks.every(({ status }) => status !== 'failed'), checks }
}

export function toMailJob(job: MailJobStatus): Wire.MailJob {
  return {
    id: job.id,
    kind: job.kind,
    state: job.state,
    ...given({ account_id: job.accountId, reason: job.reason }),
    ...times({
      requested_at: job.requestedAt,
      next_attempt_at: job.nextAttemptAt,
      expires_at: job.expiresAt,
    }),
    attempts: job.attempts,
    is_held: job.isHeld,
  }
}

export function toMailOutcome(mailId: string, outcome: MailOutcome): Wire.MailOutcome {
  const common = { mail_id: mailId, state: outcome.state }
  if (outcome.state === 'sent') return { ...common, ...times({ sent_at: outcome.at }) }
  if (outcome.state === 'ended') return { ...common, ...given({ reason: outcome.reason }) }
  if (outcome.state === 'unknown') return common
  const { reason, attempts, nextAttemptAt } = outcome.job
  return {
    ...common,
    ...given({ reason }),
    attempts,
    ...times({ next_attempt_at: nextAttemptAt }),
  }
}

export function toEvent(event: RecordedEvent): Wire.AuditEvent {
  const { id, type, at, recordedAt, details } = event
  return {
    id,
    type,
    at: at.toISOString(),
    recorded_at: recordedAt.toISOString(),
    ...given({
      account_id: event.accountId,
      address: event.address,
      user_agent: event.userAgent,
      client_id: event.clientId,
      reason: event.reason,
    }),
    ...(details && { details }),
  }
}

export function toUserStatus({
  user,
  cutoffs,
  hints,
  links,
  mails,
  events,
}: UserStatus): Wire.UserStatus {
  return {
    id: user.id,
    username: user.username,
    ...given({ email: user.email }),
    email_verified: user.emailVerified,
    disabled: user.disabled,
    has_password: user.passwordHash !== undefined,
    ...times({ oauth_sessions_ended_at: cutoffs?.oauthAt, idp_sessions_ended_at: cutoffs?.idpAt }),
    hints,
    links: links.map(toLink),
    mails: mails.map(toMailJob),
    events: events.map(toEvent),
  }
}

function toLink({ kind, state, token }: StatedLink): Wire.Link {
  return {
    kind,
    state,
    created_at: token.createdAt.toISOString(),
    expires_at: token.expiresAt.toISOString(),
    ...endsOf(token),
    ...given({ client_id: token.carried.clientId }),
    mail_id: token.mailJobId,
  }
}

export function toExplanation(explained: LinkExplanation): Wire.LinkExplanation {
  const { kind, state, summary, advice, signature, altered, token, events } = explained
  return {
    ...(kind && { kind }),
    state,
    summary,
    advice,
    ...(signature && { signature }),
    altered,
    ...(token && {
      account_id: token.userId,
      created_at: token.createdAt.toISOString(),
      expires_at: token.expiresAt.toISOString(),
      ...endsOf(token),
      ...given({ client_id: token.carried.clientId }),
      mail_id: token.mailJobId,
    }),
    history: events.map(toEvent),
  }
}

function endsOf({ usedAt, claimedAt, invalidatedAt, completedAt }: TokenHistory) {
  return times({
    used_at: usedAt ?? (invalidatedAt ? undefined : claimedAt),
    invalidated_at: invalidatedAt,
    completed_at: completedAt,
  })
}

/** Only what there is. */
function given<K extends string>(
  values: Record<K, string | undefined>,
): Partial<Record<K, string>> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the same names, without some of them
  return Object.fromEntries(
    Object.entries(values).filter(([, value]) => value !== undefined),
  ) as Partial<Record<K, string>>
}

function times<K extends string>(values: Record<K, Date | undefined>): Partial<Record<K, string>> {
  const texts = Object.entries<Date | undefined>(values).map(([name, at]) => [
    name,
    at?.toISOString(),
  ])
  return given(Object.fromEntries(texts))
}
