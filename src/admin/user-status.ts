import { linkKinds } from '../ports/mail-kinds.ts'
import { isMailAddress } from '../settings/mail-address.ts'
import type { MailJobStatus, RecordedEvent, User } from '../ports/index.ts'
import { findUser } from '../flows/account.ts'
import { isSmtpConfigured, type Settings } from '../settings/table.ts'
import { eventShape } from './audit.ts'
import { diagnose, MAIL_EVENTS } from './diagnosis.ts'
import type { Link, UserStatus } from './description.ts'
import { linkShape, shownState, tokensOf } from './link-state.ts'
import { mailShape } from './mails.ts'
import type { AdminParts, Sent } from './parts.ts'

const MOST = 20
/** Who asks again and again, and is told to wait, hides no failure. */
const MOST_MAIL_EVENTS = 200

/** What support needs to know of an account. */
export async function statusOf(parts: AdminParts, user: User): Promise<Sent<UserStatus>> {
  const { store, clock, options } = parts
  const settings = parts.settings.current()
  const [links, mails, events, ended, mailEvents, [asked], named] = await Promise.all([
    linksOf(parts, user),
    store.outbox.list({ accountId: user.id, limit: MOST }, clock.now()),
    store.audit.list({ accountId: user.id, limit: MOST }),
    store.cutoffs.read(user.id),
    store.audit.list({ accountId: user.id, types: MAIL_EVENTS, limit: MOST_MAIL_EVENTS }),
    user.email === undefined
      ? []
      : store.audit.list({ identifierHash: parts.keyedHash(user.email), limit: 1 }),
    user.email === undefined ? 'unknown' : findUser(parts.users, user.email),
  ])
  const canSend = isSmtpConfigured(settings) || options.transport !== undefined
  const name = () => user.username
  return {
    ...diagnose({
      user,
      mails,
      events: mailEvents,
      askedByAddress: isNamingNobody(asked) ? asked : undefined,
      isShared: named === 'ambiguous',
      canSend,
      needsVerified: settings.resetRequiresVerifiedEmail,
    }),
    id: user.id,
    username: user.username,
    email: user.email,
    email_verified: user.emailVerified,
    disabled: user.disabled,
    has_password: user.passwordHash !== undefined,
    oauth_sessions_ended_at: ended?.oauthAt,
    idp_sessions_ended_at: ended?.idpAt,
    hints: [...(canSend ? [] : [NOT_CONFIGURED]), ...hintsOf(user, mails, settings)],
    links,
    mails: mails.map((mail) => mailShape(mail, name)),
    events: events.map((event) => eventShape(event, name)),
  }
}

const isNamingNobody = (asked: RecordedEvent | undefined) =>
  asked?.reason === 'unknown' || asked?.reason === 'ambiguous'

async function linksOf({ store, clock }: AdminParts, user: User): Promise<Sent<Link>[]> {
  const at = clock.now()
  const links = await Promise.all(
    linkKinds.map(async (kind) => {
      const tokens = await tokensOf(store, kind).ofUser(user.id, MOST)
      return tokens.map((token) => ({ kind, token, state: shownState(token, user, at) }))
    }),
  )
  return links
    .flat()
    .sort((a, b) => b.token.createdAt.getTime() - a.token.createdAt.getTime())
    .map(linkShape)
}

const NOT_CONFIGURED =
  'SMTP is not configured: all mails wait. Set smtp_host, smtp_port and smtp_from.'

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
