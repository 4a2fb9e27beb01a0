import * as z from 'zod'
import type { User } from '../contract/index.ts'
import { linkKinds, tokensOf } from '../contract/mail-kinds.ts'
import { hashOf } from '../contract/users.ts'
import { withState } from '../flows/link-state.ts'
import { awaitedOf, type AwaitedAddress } from '../flows/other-address.ts'
import type { ClientLogout, ClientLogoutState } from '../store/index.ts'
import { AuditEvent } from './audit.ts'
import { Diagnosis } from './causes.ts'
import { diagnose, hintsOf, mailHistory } from './diagnosis.ts'
import { onAccount } from './find-account.ts'
import { fieldsOf, Link, shownState } from './links.ts'
import { MailJob } from './mails.ts'
import { operation, type AdminParts } from './operation.ts'
import { count, list, object, optional, text, time, wireOf } from './schema.ts'

export type UserStatus = z.infer<typeof UserStatus>
export const UserStatus = object('What support needs to know of an account.', {
  ...Diagnosis.shape,
  id: text,
  username: text,
  email: optional(text),
  email_verified: z.boolean(),
  disabled: z.boolean(),
  has_password: z.boolean(),
  oauth_sessions_ended_at: optional(time, 'Grants, codes and tokens from then or before are dead.'),
  idp_sessions_ended_at: optional(time, 'Sessions from then or before are dead.'),
  clients: object(
    'The clients of the last end of sessions, by what became of them. Left out if there are none.',
    {
      ended_at: time,
      notified: count.describe('They signed the person out.'),
      waiting: count.describe('They will be told.'),
      failed: count.describe('They were not told, and there is no other attempt. See the hints.'),
      not_notified: count.describe('They cannot be told: they have no `backchannel_logout_uri`.'),
    },
  ).optional(),
  hints: list(text, 'Why this account may get no mail, or is signed in still, and what to do.'),
  links: list(Link, 'Newest first.'),
  mails: list(MailJob, 'Newest first.'),
  events: list(AuditEvent, 'Newest first.'),
})

export const userStatus = operation('POST /users/status', 'account-flows:read', {
  summary:
    'An account, its links and mails, and why it got no mail. Also by an unverified address, if the user store supports it. Audited.',
  answer: UserStatus,
  // This changes nothing in the account, so an unverified address may find it.
  ...onAccount('user_status', (user, _, parts) => readUserStatus(parts, user), true),
})

/** Of the events, and of the links of each kind. */
const MAX = 20

async function readUserStatus(parts: AdminParts, user: User) {
  const { store } = parts
  const { id, username, email, emailVerified, disabled } = user
  const awaited = await awaitedOf(parts, user)
  const [history, links, events, ended, clients] = await Promise.all([
    mailHistory(parts, user),
    linksOf(parts, user, awaited),
    store.audit.list({ accountId: id, limit: MAX }),
    store.cutoffs.read(id),
    parts.flows.clientsOf(id),
  ])
  const { idpAt, oauthAt } = ended ?? {}
  return wireOf(UserStatus, {
    ...diagnose(history, awaited),
    id,
    username,
    email,
    emailVerified,
    disabled,
    hasPassword: hashOf(user) !== undefined,
    oauthSessionsEndedAt: oauthAt,
    // A cut-off of tokens ends sessions too, so the later of both counts. The first end set both.
    idpSessionsEndedAt: idpAt && oauthAt && idpAt > oauthAt ? idpAt : oauthAt,
    clients: clientCounts(clients),
    hints: [...hintsOf(history), ...hintsOfClients(clients)],
    links,
    mails: history.mails.map((mail) => wireOf(MailJob, { ...mail, username })),
    events: events.map((event) => wireOf(AuditEvent, { ...event, username })),
  })
}

/** The newest links of each kind, newest first. */
async function linksOf(parts: AdminParts, user: User, awaited: AwaitedAddress | undefined) {
  const links = await Promise.all(
    linkKinds.map(async (kind) => {
      const tokens = await tokensOf(parts.store, kind).ofUser(user.id, MAX)
      const found = await Promise.all(tokens.map((each) => withState(parts, each, user, awaited)))
      return found.map(({ token, state }) =>
        wireOf(Link, { ...fieldsOf(token), state: shownState(token, state), kind }),
      )
    }),
  )
  return links.flat().sort((a, b) => b.created_at.getTime() - a.created_at.getTime())
}

function clientCounts(clients: ClientLogout[] = []): z.input<typeof UserStatus>['clients'] {
  const [first] = clients
  if (!first) return undefined
  const count = (state: ClientLogoutState) => clients.filter((each) => each.state === state).length
  return {
    ended_at: first.requestedAt,
    notified: count('sent'),
    waiting: count('waiting'),
    failed: count('dead'),
    not_notified: count('not_notified'),
  }
}

function hintsOfClients(clients: ClientLogout[] = []): string[] {
  const dead = clients
    .filter(({ state }) => state === 'dead')
    .map(({ clientId, reason = 'unknown' }) => `${clientId} (${reason})`)
  if (dead.length === 0) return []
  const told = `Clients were not told to sign the person out: ${dead.join(', ')}.`
  return [`${told} Sign the person out there.`]
}
