/** The tokens of "This wasn't me" (3.6): one for each attempt to send a mail. */
import { isMailKind, type MailKind } from '../contract/mail-kinds.ts'
import { holds, kindOf, type RecordOf } from './kind.ts'
import type { Table } from './table.ts'

/** The id of a record is the lower-case hex SHA-256 of the raw token. */
export const NOT_ME_TOKENS = kindOf({
  name: 'not_me_tokens',
  fields: {
    kind: holds<MailKind>('text'),
    userId: 'text',
    /** Empty: the mail went to the other address with `addressId`, which a login holds. */
    email: 'text',
    addressId: 'text?',
    /** The language of the mail (BCP 47). */
    locale: 'text',
    requestedAt: 'time',
    mailJobId: 'text',
    attempt: 'number',
    createdAt: 'time',
    /** When the token has done its work. */
    usedAt: 'time?',
    /** The hash that replaces a blocked password. */
    blockedHash: 'text?',
    purgeAt: 'time',
  },
  indexes: [['userId']],
  purgedAt: 'purgeAt',
  isWhole: ({ kind }) => isMailKind(kind),
})

type NotMeRecord = RecordOf<typeof NOT_ME_TOKENS>

/** A mail and its original request. */
export type NotMeToken = Omit<NotMeRecord, 'blockedHash'>

export function notMeTokens(tokens: Table<NotMeRecord>) {
  return {
    issue: async (token: NotMeToken): Promise<void> => void (await tokens.insert(token)),

    /** A record that cannot belong to a valid token counts as absent. */
    async find(id: string): Promise<NotMeToken | undefined> {
      const record = await tokens.getReadable(id)
      if (!record) return undefined
      const { blockedHash: _, ...token } = record
      return token
    },

    /** Notes the hash that replaces a blocked password. Returns the hash that was noted first, or this one if the record is gone. */
    block: (id: string, hash: string): Promise<string> =>
      tokens.change(id, (record) => {
        if (record?.blockedHash !== undefined) return { next: record, answer: record.blockedHash }
        return { next: record && { ...record, blockedHash: hash }, answer: hash }
      }),

    /** A repeated call changes nothing. */
    async use(id: string, usedAt: Date): Promise<void> {
      await tokens.update(id, (record) => (record.usedAt ? record : { ...record, usedAt }))
    },
  }
}
