import type { CarriedParameters, PendingLoginStore, SomeLogins } from '../../ports/index.ts'
import { duplicatesIn } from './errors.ts'
import type { OpenCollection } from './collection.ts'
import { text, time } from './conditions.ts'
import { type AccountPart, accountPart } from './forget.ts'
import { type NamedIndex, purgeIndex } from './indexes.ts'
import {
  type PendingLoginDocument,
  toLoginDocument,
  toPendingLogin,
} from './pending-login-document.ts'
import { foundTogether, writtenTogether } from './together.ts'

const indexes: NamedIndex[] = [
  { name: 'newest_of_account', key: { account_id: 1, created_at: -1 } },
  purgeIndex,
]

const VOID = { password_digest: '', continued_at: { $exists: false } }

/** What is left over from before there was a limit goes step by step. */
const MOST_REMOVED = 100

export function mongoPendingLogins(open: OpenCollection): PendingLoginStore & AccountPart {
  const collection = open<PendingLoginDocument>('pending_logins')
  const found = foundTogether<PendingLoginDocument>(collection, '_id')
  const changed = writtenTogether(collection)
  const saved = writtenTogether(collection, duplicatesIn)

  return {
    ...accountPart(collection, indexes, 'account_id'),

    async save(login, most) {
      const { id, accountId } = login
      // Of a void one the key is taken, and it stays.
      const filter = { _id: text(id), $nor: [VOID] }
      await saved({ replaceOne: { filter, replacement: toLoginDocument(login), upsert: true } })
      const surplus = await collection
        .find({ account_id: text(accountId), _id: { $ne: id } }, { projection: { _id: 1 } })
        .sort({ created_at: -1 })
        .skip(most - 1)
        .limit(MOST_REMOVED)
        .toArray()
      if (surplus.length === 0) return
      await collection.deleteMany({ _id: { $in: surplus.map(({ _id }) => _id) } })
    },

    async find(which) {
      if ('id' in which) {
        const document = await found(text(which.id))
        return document && toPendingLogin(document)
      }
      const filter = 'carried' in which ? ofRequest(which) : waitingIn(which)
      for await (const document of collection.find(filter).sort({ created_at: -1 })) {
        const login = toPendingLogin(document)
        if (login) return login
      }
      return undefined
    },

    async change(which, { purgeAt, isVoid }) {
      const update = {
        ...(purgeAt && { $max: { purge_at: time(purgeAt) } }),
        ...(isVoid && { $set: { password_digest: '' } }),
      }
      const filter = 'id' in which ? { _id: text(which.id) } : ofAccount(which)
      await changed({ updateMany: { filter, update } })
    },

    async setTurn(id, turn, at) {
      const { modifiedCount } = await (at
        ? collection.updateOne(
            { _id: text(id), continued_at: { $exists: false } },
            { $set: { continued_at: time(at), continued_by: text(turn) } },
          )
        : collection.updateOne(
            { _id: text(id), continued_by: text(turn) },
            { $unset: { continued_at: true, continued_by: true } },
          ))
      return modifiedCount === 1
    },
  }
}

function ofRequest({ accountId, carried }: { accountId: string; carried: CarriedParameters }) {
  const { clientId, redirectUri, state } = carried
  return {
    account_id: text(accountId),
    client_id: sameAs(clientId),
    redirect_uri: sameAs(redirectUri),
    state: sameAs(state),
  }
}

function waitingIn({ accountId, browserHash }: { accountId: string; browserHash: string }) {
  return {
    account_id: text(accountId),
    browser_hash: text(browserHash),
    password_digest: { $ne: '' },
    continued_at: { $exists: false },
  }
}

function ofAccount({ accountId, except }: Extract<SomeLogins, { accountId: string }>) {
  return {
    account_id: text(accountId),
    ...(except !== undefined && { _id: { $ne: text(except) } }),
  }
}

function sameAs(parameter: string | undefined) {
  return parameter === undefined ? { $exists: false } : { $eq: text(parameter) }
}
