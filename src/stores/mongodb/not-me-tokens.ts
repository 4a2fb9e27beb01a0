import type { MailKind, NotMeToken, NotMeTokenStore } from '../../ports/index.ts'
import { isMailKind } from '../../ports/mail-kinds.ts'
import type { OpenCollection } from './collection.ts'
import { text, time } from './conditions.ts'
import { type DocumentOf, fromDocument, hasTypes, toDocument } from './fields.ts'
import { type AccountPart, accountPart } from './forget.ts'
import { purgeIndex } from './indexes.ts'
import { foundTogether, writtenTogether } from './together.ts'

const types = {
  /** The hash of the token. */
  id: 'string',
  kind: 'string',
  userId: 'string',
  linkId: 'string|null',
  email: 'string',
  locale: 'string',
  requestedAt: 'date',
  mailJobId: 'string',
  attempt: 'int',
  createdAt: 'date',
  usedAt: 'date|null',
  purgeAt: 'date',
} as const

interface NotMeDocument extends DocumentOf<typeof types> {
  kind: MailKind
  /** What takes the place of a password. */
  blocked_hash?: string
}

export function mongoNotMeTokens(open: OpenCollection): NotMeTokenStore & AccountPart {
  const collection = open<NotMeDocument>('not_me_tokens')
  const found = foundTogether<NotMeDocument>(collection, '_id')
  const inserted = writtenTogether(collection)
  return {
    ...accountPart(collection, [{ name: 'of_user', key: { user_id: 1 } }, purgeIndex], 'user_id'),

    issue: async (token) => inserted({ insertOne: { document: toTokenDocument(token) } }),

    async find(tokenHash) {
      const document = await found(text(tokenHash))
      const isWhole = document && hasTypes(document, types) && isMailKind(document.kind)
      return isWhole ? fromTokenDocument(document) : undefined
    },

    async block(tokenHash, hash) {
      const noted = { $ifNull: ['$blocked_hash', { $literal: text(hash) }] }
      const document = await collection.findOneAndUpdate(
        { _id: text(tokenHash) },
        [{ $set: { blocked_hash: noted } }],
        { returnDocument: 'after' },
      )
      return document?.blocked_hash ?? hash
    },

    async use(tokenHash, at) {
      const unused = { _id: text(tokenHash), used_at: null }
      await collection.updateOne(unused, { $set: { used_at: time(at) } })
    },
  }
}

function toTokenDocument(token: Omit<NotMeToken, 'usedAt'>): NotMeDocument {
  const { tokenHash, userId, kind, expiresAt: purgeAt } = token
  const record = { ...token, id: text(tokenHash), userId: text(userId), purgeAt }
  return { ...toDocument(record, types), kind }
}

function fromTokenDocument(document: NotMeDocument): NotMeToken {
  const { id: tokenHash, purgeAt: expiresAt, ...token } = fromDocument(document, types)
  return { ...token, tokenHash, expiresAt, kind: document.kind }
}
