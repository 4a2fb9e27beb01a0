import * as z from 'zod'
import type { User, UserStore } from '../contract/index.ts'
import { isTaken } from '../flows/account.ts'
import { isRecorded } from './audit.ts'
import { onAccount, type Asked } from './find-account.ts'
import { operation, refusal, type AdminParts } from './operation.ts'
import { count, given, object, optional, text, wireOf } from './schema.ts'

export type EndedSessions = z.infer<typeof EndedSessions>
export const EndedSessions = object(
  'How many records were deleted, and which clients are told. A number is left out if the adapter cannot tell it.',
  {
    oauth: optional(count, 'Grants, codes and tokens.'),
    idp: optional(count, 'Sessions and login results.'),
    clients: object(
      'Clients that the account was signed in to. Left out if the provider tells no clients.',
      {
        notified: count.describe('They are told to sign the person out.'),
        not_notified: count.describe('They cannot be told. Sign the person out there.'),
      },
    ).optional(),
  },
)

export type AccountId = z.infer<typeof AccountId>
export const AccountId = object('One account by its id. The user may be deleted already.', {
  id: given,
})

export type ForgottenAccount = z.infer<typeof ForgottenAccount>
export const ForgottenAccount = object('How many records of the account were removed.', {
  mails: count,
  reset_links: count,
  verification_links: count,
  invitation_links: count,
  not_me_links: count,
  waiting_logins: count,
  client_logouts: count,
  events: count,
  under_way: count.describe(
    'Running resets, mails that are being sent, and clients that are still to be told: not removed yet. Try again in a minute; clients may take a day.',
  ),
})

export type Verification = z.infer<typeof Verification>
export const Verification = object('What became of the address of an account.', {
  email: text,
  changed: z.boolean().describe('false: it was in this state before.'),
})

export const userOperations = {
  endSessions: operation('POST /users/end-sessions', 'account-flows:support', {
    summary:
      'Ends all sessions, grants and tokens of the account, and voids every link mailed to it. Audited.',
    answer: EndedSessions,
    ...onAccount('end_sessions', async ({ id }, _, { flows }) => {
      const { clients, ...ended } = await flows.forHosts.endSessions(id)
      const told = clients && { notified: clients.notified, not_notified: clients.notNotified }
      return { ...ended, clients: told }
    }),
  }),

  verifyUser: operation('POST /users/verify', 'account-flows:support', {
    summary: 'Makes the address of an account verified, without a mail. Audited.',
    answer: Verification,
    ...onAccount('user_verify', changing('user_verified', verify)),
  }),

  unverifyUser: operation('POST /users/unverify', 'account-flows:support', {
    summary:
      'Makes the address of an account unverified, if the user store supports it. Sessions and links stay. Audited.',
    answer: Verification,
    ...onAccount('user_unverify', changing('user_unverified', unverify)),
  }),

  forgetUser: operation('POST /users/forget', 'account-flows:support', {
    summary:
      'Erases the records about an account: mails, links, waiting logins, events. Actions of admins stay, without the id. Audited, without the id.',
    body: AccountId,
    answer: ForgottenAccount,
    // It looks up no user: the account may be gone. It records no id: that would be the next thing to forget.
    async run({ body: { id }, record }, { store, clock, keyed }) {
      const accountHash = keyed.keyedHash(id)
      await record('user_forget', { details: { account_hash: accountHash } })
      return wireOf(ForgottenAccount, await store.forget(id, clock.now(), accountHash))
    },
  }),
}

/** Changes an account, and records the change. The admin's request was recorded before. */
function changing(action: string, change: typeof verify) {
  return async (user: User, { record }: Asked, { users, log }: AdminParts) => {
    const outcome = await change(users, user)
    if ('code' in outcome || !outcome.changed) return outcome
    const recorded = record(action, { accountId: user.id, details: { changed: 'true' } })
    await isRecorded(log, recorded, 'a change of an account', { action })
    return outcome
  }
}

/** A verified account needs none of the links that are under way. A login that waits goes on by its button. */
async function verify(users: UserStore, { id, email, emailVerified }: User) {
  if (email === undefined) return unchanged('no_address')
  // An address that several accounts have verified names none of them, so no mail would be sent by it.
  const isOthers = () => isTaken(users, id, email)
  if (!emailVerified && (await isOthers())) return unchanged('address_taken')
  const changed = await users.markEmailVerified(id, email)
  // Another account may have verified it meanwhile. If two do so at once, both give way.
  if (changed && (await isOthers()) && (await users.markEmailUnverified?.(id, email)))
    return unchanged('address_taken')
  const now = changed ? undefined : await users.findById(id)
  const isSo = changed || (now?.emailVerified === true && now.email === email)
  return isSo ? { email, changed } : unchanged('not_verified')
}

async function unverify(users: UserStore, { id, email }: User) {
  if (!users.markEmailUnverified) return unchanged('unsupported')
  if (email === undefined) return unchanged('no_address')
  return { email, changed: await users.markEmailUnverified(id, email) }
}

const WHY_UNCHANGED = {
  no_address: 'the account has no e-mail address. Add one in your user store.',
  not_verified:
    'the account is disabled, its address was changed just now, or another account has it. See user status.',
  address_taken:
    'another account has this verified address. With two, no mail could be sent to it. Correct one in your user store.',
  unsupported: 'your user store has no markEmailUnverified. Change it there directly.',
}

const unchanged = (code: keyof typeof WHY_UNCHANGED) =>
  refusal(409, code, `Nothing was changed: ${WHY_UNCHANGED[code]}`)
