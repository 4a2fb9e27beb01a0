import { linkKinds } from '../ports/mail-kinds.ts'
import type { RecordedEvent, SessionCutoffs, User } from '../ports/index.ts'
import { foldTyped } from '../ports/users.ts'
import type { ClientLogout, ClientLogoutState } from '../records/index.ts'
import { findUser } from '../flows/account.ts'
import { eventShape } from './audit.ts'
import { noMailAtAll, noPassword, NOT_CONFIGURED, unverified, VERIFIED } from './causes.ts'
import { diagnose, MAIL_EVENTS, type MailHistory } from './diagnosis.ts'
import type { Link, UserStatus } from './description.ts'
import { shownState, tokenShape, tokensOf } from './link-state.ts'
import { mailShape } from './mails.ts'
import type { AdminParts, Sent } from './parts.ts'

const MOST = 20
/** Who asks again and again, and is told to wait, hides no failure. */
const MOST_MAIL_EVENTS = 200

/** What support needs to know of an account. */
export async function statusOf(parts: AdminParts, user: User): Promise<Sent<UserStatus>> {
  const { store, clock } = parts
  const settings = parts.settings.current()
  const [links, mails, events, ended, clients, mailEvents, disowned, asked, named] =
    await Promise.all([
      linksOf(parts, user),
      store.outbox.list({ accountId: user.id, limit: MOST }, clock.now()),
      store.audit.list({ accountId: user.id, limit: MOST }),
      store.cutoffs.read(user.id),
      parts.clientsOf(user.id),
      store.audit.list({ accountId: user.id, types: MAIL_EVENTS, limit: MOST_MAIL_EVENTS }),
      store.audit.list({ accountId: user.id, types: ['mail_disowned'], limit: MOST }),
      askedInVain(parts, user),
      user.email === undefined ? 'unknown' : findUser(parts.users, user.email),
    ])
  const name = () => user.username
  const history = {
    user,
    mails,
    events: mailEvents,
    disowned,
    askedInVain: asked,
    isShared: named === 'ambiguous',
    canSend: parts.canSend(),
    needsVerified: settings.resetRequiresVerifiedEmail,
  }
  return {
    ...diagnose(history),
    id: user.id,
    username: user.username,
    email: user.email,
    email_verified: user.emailVerified,
    disabled: user.disabled,
    has_password: user.passwordHash !== undefined,
    oauth_sessions_ended_at: ended?.oauthAt,
    idp_sessions_ended_at: ended && sessionsEndedAt(ended),
    clients: clientCounts(clients),
    hints: [...hintsOf(history), ...hintsOfClients(clients)],
    links,
    mails: mails.map((mail) => mailShape(mail, name)),
    events: events.map((event) => eventShape(event, name)),
  }
}

/** The newest request with its address that named nobody, or that the host denied; of one that was denied, with its username too. */
async function askedInVain(
  { store, keyedHash }: AdminParts,
  { email, username }: User,
): Promise<RecordedEvent | undefined> {
  const newest = async (typed: string | undefined, reasons: string[]) => {
    if (typed === undefined) return []
    const identifierHash = keyedHash(foldTyped(typed))
    const asked = await store.audit.list({ identifierHash, limit: 1 })
    return asked.filter(({ reason }) => reasons.includes(reason ?? ''))
  }
  const found = await Promise.all([
    newest(email, ['unknown', 'ambiguous', 'denied']),
    newest(username, ['denied']),
  ])
  const [last] = found.flat().toSorted((a, b) => b.recordedAt.getTime() - a.recordedAt.getTime())
  return last
}

async function linksOf({ store, clock }: AdminParts, user: User): Promise<Sent<Link>[]> {
  const at = clock.now()
  const links = await Promise.all(
    linkKinds.map(async (kind) => {
      const tokens = await tokensOf(store, kind).ofUser(user.id, MOST)
      return tokens.map((token) =>
        Object.assign(tokenShape(token), { kind, state: shownState(token, user, at) }),
      )
    }),
  )
  return links.flat().sort((a, b) => b.created_at.getTime() - a.created_at.getTime())
}

/** All that is so of the account, as far as a mail may need it. */
function hintsOf({ user, mails, needsVerified, canSend }: MailHistory): string[] {
  const hints = [...(canSend ? [] : [NOT_CONFIGURED]), ...noMailAtAll(user)]
  if (user.passwordHash === undefined) hints.push(noPassword(user))
  else if (user.email !== undefined)
    hints.push(user.emailVerified ? VERIFIED : unverified({ user, needsVerified }))
  const summaries = hints.map(({ summary }) => summary)
  if (mails.some(({ state }) => state === 'dead'))
    summaries.push(
      'There are dead letters. See their reasons, then use account-flows outbox retry.',
    )
  return summaries
}

// What ends tokens ends sessions too, and may be the later of both.
function sessionsEndedAt({ idpAt, oauthAt }: SessionCutoffs): Date | undefined {
  return idpAt && oauthAt && idpAt > oauthAt ? idpAt : (oauthAt ?? idpAt)
}

function clientCounts(clients: ClientLogout[] = []): Sent<UserStatus>['clients'] {
  const [first] = clients
  if (!first) return undefined
  const count = (state: ClientLogoutState) => clients.filter((each) => each.state === state).length
  return {
    ended_at: first.requestedAt,
    told: count('sent'),
    waiting: count('waiting'),
    failed: count('dead'),
    untold: count('untold'),
  }
}

function hintsOfClients(clients: ClientLogout[] = []): string[] {
  const dead = clients
    .filter(({ state }) => state === 'dead')
    .map(({ clientId, reason = 'unknown' }) => `${clientId} (${reason})`)
  if (dead.length === 0) return []
  return [
    `Clients were not told to sign the person out: ${dead.join(', ')}. Sign the person out there.`,
  ]
}
