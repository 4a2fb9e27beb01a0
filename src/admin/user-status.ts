import * as z from 'zod'
import type { RecordedEvent, SessionCutoffs, User } from '../ports/index.ts'
import type { ClientLogout, ClientLogoutState } from '../records/index.ts'
import { foldTyped } from '../ports/users.ts'
import { findUser } from '../flows/account.ts'
import { AuditEvent, eventShape } from './audit.ts'
import * as causes from './causes.ts'
import { diagnose, MAIL_EVENTS, type MailHistory } from './diagnosis.ts'
import { Link, linksOf } from './link-state.ts'
import { MailJob, mailShape } from './mail-record.ts'
import type { AdminParts } from './operation.ts'
import { count, list, object, optional, text, time } from './schema.ts'

export type UserStatus = z.infer<typeof UserStatus>
export const UserStatus = object('What support needs to know of an account.', {
  ...causes.Diagnosis.shape,
  id: text,
  username: text,
  email: optional(text),
  email_verified: z.boolean(),
  disabled: z.boolean(),
  has_password: z.boolean(),
  oauth_sessions_ended_at: optional(time, 'Grants, codes and tokens from then or before are dead.'),
  idp_sessions_ended_at: optional(time, 'Sessions from then or before are dead.'),
  clients: optional(
    object(
      'The clients of the last end of sessions, by what became of them. Left out if there are none.',
      {
        ended_at: time,
        told: count.describe('They signed the person out.'),
        waiting: count.describe('They will be told.'),
        failed: count.describe('They were not told, and nobody tries again. See the hints.'),
        untold: count.describe('They cannot be told: they have no `backchannel_logout_uri`.'),
      },
    ),
  ),
  hints: list(text, 'Why this account may get no mail, or is signed in still, and what to do.'),
  links: list(Link, 'Newest first.'),
  mails: list(MailJob, 'Newest first.'),
  events: list(AuditEvent, 'Newest first.'),
})

const MOST = 20
/** Who asks again and again, and is told to wait, hides no failure. */
const MOST_MAIL_EVENTS = 200

/** What support needs to know of an account. */
export async function statusOf(parts: AdminParts, user: User): Promise<z.input<typeof UserStatus>> {
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

/** All that is so of the account, as far as a mail may need it. */
function hintsOf({ user, mails, needsVerified, canSend }: MailHistory): string[] {
  const hints = [...(canSend ? [] : [causes.NOT_CONFIGURED]), ...causes.noMailAtAll(user)]
  if (user.passwordHash === undefined) hints.push(causes.noPassword(user))
  else if (user.email !== undefined)
    hints.push(user.emailVerified ? causes.VERIFIED : causes.unverified({ user, needsVerified }))
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

function clientCounts(clients: ClientLogout[] = []): z.input<typeof UserStatus>['clients'] {
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
