import type { MailKind, NotMeToken, NotMeTokenStore } from '../../ports/index.ts'
import { isMailKind } from '../../ports/mail-kinds.ts'
import type { Forgetful } from '../state/forget-account.ts'
import type { OpenCollection } from './collection.ts'
import { text, time } from './conditions.ts'
import { forgetDocuments } from './forget.ts'
import { purgeIndex, storedPart, type StoredPart } from './indexes.ts'
import { foundTogether, writtenTogether } from './together.ts'
import { type Fields, hasTypes } from './values.ts'

const types = {
  /** The hash of the token. */
  _id: 'string',
  user_id: 'string',
  link_id: ['string', 'null'],
  email: 'string',
  locale: 'string',
  requested_at: 'date',
  mail_job_id: 'string',
  attempt: 'int',
  created_at: 'date',
  used_at: ['date', 'null'],
  purge_at: 'date',
} as const

interface NotMeDocument extends Fields<typeof types> {
  kind: MailKind
  /** What takes the place of a password. */
  blocked_hash?: string
}

export function mongoNotMeTokens(open: OpenCollection): NotMeTokenStore & StoredPart & Forgetful {
  const collection = open<NotMeDocument>('not_me_tokens')
  const found = foundTogether<NotMeDocument>(collection, '_id')
  const inserted = writtenTogether(collection)
  return {
    ...storedPart(collection, [{ name: 'of_user', key: { user_id: 1 } }, purgeIndex]),

    issue: async (token) => void (await inserted({ insertOne: { document: toDocument(token) } })),

    async find(tokenHash) {
      const document = await found(text(tokenHash))
      const isWhole = document && hasTypes(document, types) && isMailKind(document.kind)
      return isWhole ? fromDocument(document) : undefined
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

    forget: (userId) => forgetDocuments(collection, { user_id: text(userId) }),
  }
}

const toDocument = (token: Omit<NotMeToken, 'usedAt'>): NotMeDocument => ({
  _id: text(token.tokenHash),
  kind: token.kind,
  user_id: text(token.userId),
  link_id: token.linkId ?? null,
  email: token.email,
  locale: token.locale,
  requested_at: time(token.requestedAt),
  mail_job_id: token.mailJobId,
  attempt: token.attempt,
  created_at: time(token.createdAt),
  used_at: null,
  purge_at: time(token.expiresAt),
})

const fromDocument = (document: NotMeDocument): NotMeToken => ({
  tokenHash: document._id,
  kind: document.kind,
  userId: document.user_id,
  linkId: document.link_id ?? undefined,
  email: document.email,
  locale: document.locale,
  requestedAt: document.requested_at,
  mailJobId: document.mail_job_id,
  attempt: document.attempt,
  createdAt: document.created_at,
  expiresAt: document.purge_at,
  usedAt: document.used_at ?? undefined,
})
