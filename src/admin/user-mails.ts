/** Mails to one account, which an admin asks for. */
import type * as z from 'zod'
import type { Requester, User } from '../contract/index.ts'
import type { LinkKind } from '../contract/mail-kinds.ts'
import type { InvitationRefusal } from '../flows/for-hosts.ts'
import { isMailAddress } from '../settings/addresses.ts'
import { AccountQuery, findAccount, onAccount, type Asked, type Work } from './find-account.ts'
import { notAnAddress, operation, refusal, type AdminParts } from './operation.ts'
import { given, object, optional, text, wireOf } from './schema.ts'

export type Accepted = z.infer<typeof Accepted>
export const Accepted = object('A mail was asked for.', {
  mail_id: text.describe('To ask for its outcome.'),
})

export type ChangedAccount = z.infer<typeof ChangedAccount>
export const ChangedAccount = AccountQuery.extend({
  before: optional(given, 'The verified address before, which gets a notice.'),
}).describe('An account whose address was changed.')

export type ChangedEmail = z.infer<typeof ChangedEmail>
export const ChangedEmail = object('The mails that were asked for.', {
  mail_id: optional(text, 'The verification mail, if the address is unverified.'),
  notice_id: optional(text, 'The notice to the address before.'),
})

const MAILS = { answer: Accepted, status: 202 } as const

export const userMailOperations = {
  sendReset: operation('POST /users/send-reset', 'account-flows:support', {
    ...MAILS,
    summary:
      'Requests a reset link for the account. Without a password, it may get another mail or none. Audited.',
    ...onAccount('send_reset', ask('password_reset')),
  }),

  inviteUser: operation('POST /users/invite', 'account-flows:support', {
    ...MAILS,
    summary:
      'Asks for an invitation of an account without a password, to its address. Found by an unverified address too, where the host can. Audited.',
    // The mail goes only to the address of the account, so an unverified address may find it.
    ...onAccount('user_invite', invite, true),
  }),

  sendVerification: operation('POST /users/send-verification', 'account-flows:support', {
    ...MAILS,
    summary: 'Requests a verification link for the account. Audited.',
    ...onAccount('send_verification', ask('email_verification')),
  }),

  emailChanged: operation('POST /users/email-changed', 'account-flows:support', {
    summary:
      'After an address was changed: voids links to others, asks for a link to the new one and a notice to the one before. Audited.',
    body: ChangedAccount,
    answer: ChangedEmail,
    async run({ body: { before: email, ...account }, record }, { users, flows }) {
      if (email !== undefined && !isMailAddress(email)) return notAnAddress(email, 'done', 'before')
      const found = await findAccount(users, account, true)
      if (!('user' in found)) return found
      const { id: accountId } = found.user
      await record('email_changed', { accountId })
      const before = email === undefined ? undefined : { email, emailVerified: true }
      return wireOf(ChangedEmail, await flows.forHosts.emailChanged(accountId, before))
    },
  }),
}

/** An admin asks for these mails: neither the language nor the browser is the reader's. */
const byAdmin = ({ address, userAgent }: Requester) => ({ address, userAgent, isAdmin: true })

function ask(kind: LinkKind): Work<Accepted> {
  return async ({ id: accountId }, { requester }, { flows }) => {
    const wanted = { accountId, parameters: {}, requester: byAdmin(requester) }
    return { mail_id: await flows.requestMail(kind, wanted) }
  }
}

async function invite({ id }: User, { requester }: Asked, parts: AdminParts) {
  const invited = await parts.flows.invite(id, {}, byAdmin(requester))
  if ('mailId' in invited) return { mail_id: invited.mailId }
  const title = `Nobody was invited: ${WHY[invited.refused]}`
  if (invited.refused === 'not_found') return refusal(404, 'unknown_account', title)
  return refusal(409, invited.refused, title)
}

const WHY: Record<InvitationRefusal, string> = {
  not_found: 'the account is gone.',
  disabled: 'the account is disabled. Enable it where your users are.',
  no_address: 'the account has no e-mail address. Give it one where your users are.',
  bad_address: 'the address is not one plain e-mail address. Correct it where your users are.',
  has_password: 'the account has a password. Use user send-reset if it was forgotten.',
  unsupported: 'the users of this host have no setFirstPassword. Add it where your users are.',
}
