import type {
  AuditHistory,
  MailJobStatus,
  OutboxAdministration,
  RecordedEvent,
  SessionCutoffs,
  SessionCutoffStore,
  TokenHistories,
  TokenHistory,
  User,
} from '../ports/index.ts'
import { isSmtpConfigured, type Settings } from '../settings/table.ts'
import type { LinkKind } from './link-explanation.ts'
import { linkState, type LinkState } from './link-state.ts'
import { isMailAddress } from '../settings/mail-address.ts'

/** A link of an account, and what became of it. */
export interface StatedLink {
  kind: LinkKind
  state: LinkState
  token: TokenHistory
}

/** What support needs to know of an account. */
export interface UserStatus {
  user: User
  cutoffs: SessionCutoffs | undefined
  /** Why this account may get no mail, and what helps. */
  hints: string[]
  /** Newest first, like the other lists. */
  links: StatedLink[]
  mails: MailJobStatus[]
  events: RecordedEvent[]
}

export interface UserStatusPorts {
  tokens: Record<LinkKind, TokenHistories>
  outbox: Pick<OutboxAdministration, 'list'>
  audit: AuditHistory
  cutoffs: Pick<SessionCutoffStore, 'read'>
  settings(): Settings
  /** Whether something takes the mails while SMTP is not configured. */
  hasDevelopmentMailer: boolean
  now(): Date
}

const MOST = 20

export function createUserStatus(ports: UserStatusPorts) {
  const { tokens, outbox, audit, cutoffs, settings, hasDevelopmentMailer, now } = ports

  async function linksOf(user: User): Promise<StatedLink[]> {
    const at = now()
    const kinds: LinkKind[] = ['password_reset', 'email_verification']
    const links = await Promise.all(
      kinds.map(async (kind) => {
        const histories = await tokens[kind].historiesOf(user.id, MOST)
        return histories.map((token) => ({ kind, token, state: linkState(token, user, at) }))
      }),
    )
    return links.flat().sort((a, b) => b.token.createdAt.getTime() - a.token.createdAt.getTime())
  }

  return async (user: User): Promise<UserStatus> => {
    const [links, mails, events, ended] = await Promise.all([
      linksOf(user),
      outbox.list({ accountId: user.id, limit: MOST }, now()),
      audit.list({ accountId: user.id, limit: MOST }),
      cutoffs.read(user.id),
    ])
    const hints = [
      ...(hasDevelopmentMailer ? [] : serverHints(settings())),
      ...hintsOf(user, mails, settings()),
    ]
    return { user, cutoffs: ended, hints, links, mails, events }
  }
}

function serverHints(settings: Settings): string[] {
  return isSmtpConfigured(settings)
    ? []
    : ['SMTP is not configured: all mails wait. Set smtp_host, smtp_port and smtp_from.']
}

function hintsOf(user: User, mails: MailJobStatus[], settings: Settings): string[] {
  const hints: string[] = []
  if (user.disabled) hints.push('The account is disabled: it gets no mail.')
  if (user.email === undefined) hints.push('The account has no address: it gets no mail.')
  else if (!isMailAddress(user.email)) {
    hints.push('The address is not one plain e-mail address: no mail can be sent to it.')
  }
  if (user.passwordHash === undefined) {
    hints.push('The account has no password: it gets no reset link.')
  }
  if (user.email !== undefined) hints.push(verificationHint(user, settings))
  if (mails.some(({ state }) => state === 'dead')) {
    hints.push('There are dead letters: see their reasons, and account-flows outbox retry.')
  }
  return hints
}

function verificationHint({ emailVerified }: User, settings: Settings): string {
  if (emailVerified) return 'The address is verified: it gets no verification mail.'
  return settings.resetRequiresVerifiedEmail
    ? 'The address is not verified: it gets no reset link (reset_requires_verified_email).'
    : 'The address is not verified: who asks for a reset link has to type the username.'
}
