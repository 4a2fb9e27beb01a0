import type * as z from 'zod'
import { isMailAddress } from '../settings/addresses.ts'
import { AccountQuery, findAccount } from './find-account.ts'
import { notAnAddress, operation } from './operation.ts'
import { given, object, optional, text, wireOf } from './schema.ts'

export type ChangedAccount = z.infer<typeof ChangedAccount>
export const ChangedAccount = AccountQuery.extend({
  before: optional(given, 'The verified address before, which gets a notice.'),
}).describe('An account whose address was changed.')

export type ChangedEmail = z.infer<typeof ChangedEmail>
export const ChangedEmail = object('The mails that were asked for.', {
  mail_id: optional(text, 'The verification mail, if the address is unverified.'),
  notice_id: optional(text, 'The notice to the address before.'),
})

export const emailChanged = operation({
  summary:
    'After an address was changed: voids links to others, asks for a link to the new one and a notice to the one before. Audited.',
  body: ChangedAccount,
  answer: ChangedEmail,
  async run({ body: { before: email, ...account }, record }, { users, flows }) {
    if (email !== undefined && !isMailAddress(email)) return notAnAddress(email, 'done', 'before')
    const user = await findAccount(users, account, true)
    if (!('username' in user)) return user
    await record('email_changed', { accountId: user.id })
    const before = email === undefined ? undefined : { email, emailVerified: true }
    return wireOf(ChangedEmail, await flows.forHosts.emailChanged(user.id, before))
  },
})
