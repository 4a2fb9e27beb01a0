/** The tokens of "This wasn't me" (3.6). */
import type { NotMeToken, NotMeTokenStore } from '../ports/index.ts'
import { isMailKind } from '../ports/mail-kinds.ts'
import { kindOf } from './kind.ts'
import type { Records } from './records.ts'
import { tableOf } from './table.ts'

interface NotMeRecord extends Omit<NotMeToken, 'tokenHash' | 'kind' | 'expiresAt'> {
  /** The hash of the token. */
  id: string
  kind: string
  /** What takes the place of a password. */
  blockedHash: string | undefined
  purgeAt: Date
}

export const NOT_ME_TOKENS = kindOf<NotMeRecord>({
  name: 'not_me_tokens',
  fields: {
    kind: 'text',
    userId: 'text',
    linkId: 'text?',
    email: 'text',
    locale: 'text',
    requestedAt: 'time',
    mailJobId: 'text',
    attempt: 'number',
    createdAt: 'time',
    usedAt: 'time?',
    blockedHash: 'text?',
    purgeAt: 'time',
  },
  indexes: [['userId']],
  purgedAt: 'purgeAt',
})

export function notMeTokens(records: Records): NotMeTokenStore {
  const tokens = tableOf(records, NOT_ME_TOKENS)
  return {
    async issue({ tokenHash: id, expiresAt: purgeAt, ...token }) {
      const unused = { usedAt: undefined, blockedHash: undefined }
      await tokens.insert({ ...token, ...unused, id, purgeAt })
    },

    async find(tokenHash) {
      const record = await tokens.getReadable(tokenHash)
      return record && tokenOf(record)
    },

    block: (tokenHash, hash) =>
      tokens.change(tokenHash, (record) => {
        const blockedHash = record?.blockedHash ?? hash
        const isNoted = record?.blockedHash === blockedHash
        return {
          next: record && !isNoted ? { ...record, blockedHash } : record,
          answer: blockedHash,
        }
      }),

    async use(tokenHash, usedAt) {
      await tokens.change(tokenHash, (record) => ({
        next: record && !record.usedAt ? { ...record, usedAt } : record,
        answer: undefined,
      }))
    },
  }
}

function tokenOf(record: NotMeRecord): NotMeToken | undefined {
  const { id: tokenHash, purgeAt: expiresAt, blockedHash: _, kind, ...token } = record
  return isMailKind(kind) ? { ...token, tokenHash, expiresAt, kind } : undefined
}
