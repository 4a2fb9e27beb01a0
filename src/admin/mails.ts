import type { RecordedEvent } from '../ports/index.ts'
import { MAIL_KINDS, mailKinds } from '../ports/mail-kinds.ts'
import type { AccountFlowsStore, MailJobStatus } from '../records/index.ts'
import { isMailAddress } from '../settings/mail-address.ts'
import type { Settings } from '../settings/table.ts'
import type { RenderedMail, Views } from '../views/index.ts'
import { eventShape, recordAction } from './audit.ts'
import { usernamesOf, type NameOf } from './usernames.ts'
import { notAcceptable, withSecretsLeft } from './settings.ts'
import type { CheckReport, MailJob, MailOutcome, MailRecord } from './description.ts'
import type { AdminEndpoints, AdminParts, AdminRefusal, Sent } from './parts.ts'

/** Mails to try the settings with, and what became of one. */
export function mailOperations(parts: AdminParts) {
  const { store, users, settings, views, oauthUrl, clock } = parts
  return {
    async testMail(request) {
      const { to, settings: wanted = {} } = request.body
      if (!isMailAddress(to)) return notAnAddress(to, 'sent')
      await settings.refresh()
      const tried = settings.tried(wanted)
      if (Array.isArray(tried)) return notAcceptable('sent', tried)
      const keys = Object.keys(wanted)
      await recordAction(parts, request, 'mail_test', {
        ...(keys.length > 0 && { details: { keys } }),
      })
      const mail = testMail(views, clock.now())
      const checks = await parts.checkMail(tried.settings, { to, mail })
      return { answer: reportOf(checks.map((check) => withSecretsLeft(check, tried.secretsLeft))) }
    },

    async previewMail({ query: { template: name, locale } }) {
      const wish = { name, locale, oauthUrl, settings: settings.current(), at: clock.now() }
      const mail = previewMail(views, wish)
      if (mail) return { answer: mail }
      const expected = `one of ${views.locales.join(', ')}`
      const errors = [{ key: 'locale', expected, got: 'another locale' }]
      return { status: 400, code: 'invalid_request', title: 'There is no such locale.', errors }
    },

    async mailOutcome({ query }) {
      return { answer: outcomeOf(await readMail(store, query.mail_id, clock.now())) }
    },

    async showMail({ query }) {
      const kept = await readMail(store, query.mail_id, clock.now())
      return { answer: recordOf(kept, await usernamesOf(users, [kept])) }
    },
  } satisfies Partial<AdminEndpoints>
}

export function mailShape(job: MailJobStatus, nameOf: NameOf): Sent<MailJob> {
  return {
    id: job.id,
    kind: job.kind,
    state: job.state,
    account_id: job.accountId,
    username: nameOf(job.accountId),
    reason: job.reason,
    requested_at: job.requestedAt,
    next_attempt_at: job.nextAttemptAt,
    expires_at: job.expiresAt,
    attempts: job.attempts,
    is_held: job.isHeld,
  }
}

export function reportOf(checks: CheckReport['checks']): CheckReport {
  return { ok: checks.every(({ status }) => status !== 'failed'), checks }
}

export function notAnAddress(to: string, what: 'sent' | 'checked'): AdminRefusal {
  const got = JSON.stringify(to).slice(0, 64)
  const errors = [{ key: 'to', expected: 'one plain e-mail address', got }]
  const title = `Nothing was ${what}: this is not an e-mail address.`
  return { status: 400, code: 'invalid_request', title, errors }
}

/** More than one mail fails in its life. */
const MAX_FAILURES = 1_000

/** What is kept of a mail. The outbox is asked first: a job leaves it after its end is recorded. */
async function readMail({ outbox, audit }: AccountFlowsStore, id: string, at: Date) {
  const [job] = await outbox.list({ id, limit: 1 }, at)
  const [[requested], [sent]] = await Promise.all([
    audit.list({ id: `requested:${id}`, limit: 1 }),
    audit.list({ id: `mail_sent:${id}`, limit: 1 }),
  ])
  const accountId = job?.accountId ?? requested?.accountId ?? sent?.accountId
  return { id, job, requested, sent, accountId, failures: await failuresOf(audit, id, accountId) }
}

type KeptMail = Awaited<ReturnType<typeof readMail>>

function outcomeOf({ id, job, sent, requested, failures }: KeptMail): Sent<MailOutcome> {
  if (job) {
    const { state, reason, attempts, nextAttemptAt } = job
    return { mail_id: id, state, reason, attempts, next_attempt_at: nextAttemptAt }
  }
  if (sent) return { mail_id: id, state: 'sent', sent_at: sent.at }
  if (!requested) return { mail_id: id, state: 'unknown' }
  // A dead letter that was retried ended for another reason than at first.
  return { mail_id: id, state: 'ended', reason: failures[0]?.reason ?? requested.reason }
}

function recordOf(kept: KeptMail, nameOf: NameOf): Sent<MailRecord> {
  const { job, requested, sent, failures } = kept
  const history = [sent, ...failures, requested].filter((event) => event !== undefined).toReversed()
  return {
    ...outcomeOf(kept),
    mail: job && mailShape(job, nameOf),
    message_id: textOf(sent?.details?.['message_id']),
    queue_id: textOf(sent?.details?.['queue_id']),
    history: history.map((event) => eventShape(event, nameOf)),
  }
}

const textOf = (detail: unknown) => (typeof detail === 'string' ? detail : undefined)

/** Newest first. */
async function failuresOf(
  audit: AccountFlowsStore['audit'],
  id: string,
  accountId: string | undefined,
): Promise<RecordedEvent[]> {
  if (accountId === undefined) return []
  const types = new Set(mailKinds.map((kind) => `${MAIL_KINDS[kind].flow}_mail_failed` as const))
  const failures = await audit.list({ accountId, types: [...types], limit: MAX_FAILURES })
  return failures.filter((event) => event.id.startsWith(`mail_failed:${id}:`))
}

const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'

interface PreviewWish {
  name: string
  locale: string
  oauthUrl: string
  settings: Settings
  at: Date
}

/** A mail as it would leave, with made-up values and no token. `undefined`: there is no such mail or locale. */
export function previewMail(
  views: Views,
  { name, locale, oauthUrl, settings, at }: PreviewWish,
): RenderedMail | undefined {
  const kind = mailKinds.find((each) => MAIL_KINDS[each].template === name)
  if (!kind || !views.locales.includes(locale)) return undefined
  const { template, page, link } = MAIL_KINDS[kind]
  const locals = {
    username: 'ann',
    link: `${oauthUrl}${page}`,
    notMe: `${oauthUrl}/not-me`,
    at,
    ...(link && { lifetimeMs: settings[link.lifetime] }),
    clientName: 'Example App',
    userAgent: BROWSER,
  }
  return views.mail(template, locals, { asked: locale })
}

/** What is sent to try the settings out. */
export function testMail(views: Views, at: Date): RenderedMail {
  return views.mail('test', { username: '', link: '', at })
}
