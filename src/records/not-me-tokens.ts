/** The tokens of "This wasn't me" (3.6): one for each attempt to send a mail. */
import { isMailKind, type MailKind } from '../ports/mail-kinds.ts'
import { kindOf, type RecordOf } from './kind.ts'
import type { Records } from './records.ts'
import { tableOf } from './table.ts'

/** The id of a record is the hash of its token. */
export const NOT_ME_TOKENS = kindOf({
  name: 'not_me_tokens',
  fields: {
    kind: 'text',
    userId: 'text',
    /** `undefined`: the mail is a notice, and has none with a token. */
    linkId: 'text?',
    /** Where the mail went. */
    email: 'text',
    /** The language of the mail (BCP 47). */
    locale: 'text',
    requestedAt: 'time',
    mailJobId: 'text',
    attempt: 'number',
    createdAt: 'time',
    /** When it had done its work. `undefined`: not yet. */
    usedAt: 'time?',
    /** What takes the place of a password. */
    blockedHash: 'text?',
    purgeAt: 'time',
  },
  indexes: [['userId']],
  purgedAt: 'purgeAt',
})

type NotMeRecord = RecordOf<typeof NOT_ME_TOKENS>

/** A mail, by the token behind its "This wasn't me", with the request that it was sent for. */
export interface NotMeToken extends Omit<NotMeRecord, 'id' | 'kind' | 'blockedHash' | 'purgeAt'> {
  /** Lower-case hex SHA-256 of the 43 characters of the raw token. */
  tokenHash: string
  kind: MailKind
  /** The record is removed then or a little later. */
  expiresAt: Date
}

export type NotMeTokenStore = ReturnType<typeof notMeTokens>

export function notMeTokens(records: Records) {
  const tokens = tableOf(records, NOT_ME_TOKENS)
  return {
    async issue(issued: Omit<NotMeToken, 'usedAt'>): Promise<void> {
      const { tokenHash: id, expiresAt: purgeAt, ...token } = issued
      await tokens.insert({ ...token, id, purgeAt })
    },

    /** `undefined`: there is no such token. A record that no token of ours can be is as if it were not there. */
    async find(tokenHash: string): Promise<NotMeToken | undefined> {
      const record = await tokens.getReadable(tokenHash)
      return record && tokenOf(record)
    },

    /** Notes the hash that takes the place of a password, in one step. Answers the one that was noted first; also where the record is gone. */
    block: (tokenHash: string, hash: string): Promise<string> =>
      tokens.change(tokenHash, (record) => {
        const { blockedHash = hash } = record ?? {}
        const next =
          record?.blockedHash === undefined ? record && { ...record, blockedHash } : record
        return { next, answer: blockedHash }
      }),

    /** Sets `usedAt`, in one step. Repeated, it changes nothing. */
    async use(tokenHash: string, usedAt: Date): Promise<void> {
      await tokens.update(tokenHash, (record) => (record.usedAt ? record : { ...record, usedAt }))
    },
  }
}

function tokenOf(record: NotMeRecord): NotMeToken | undefined {
  const { id: tokenHash, purgeAt: expiresAt, blockedHash: _, kind, ...token } = record
  return isMailKind(kind) ? { ...token, tokenHash, expiresAt, kind } : undefined
}
