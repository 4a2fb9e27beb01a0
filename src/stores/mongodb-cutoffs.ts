import type { Db } from 'mongodb'
import type { SessionCutoffStore } from '../ports.ts'
import { openCollection } from './mongodb-collection.ts'
import { text, time } from './mongodb-conditions.ts'
import { isDuplicateKey } from './mongodb-errors.ts'
import { storedPart, type StoredPart } from './mongodb-indexes.ts'

interface CutoffDocument {
  _id: string
  idp_at?: Date
  oauth_at?: Date
}

/** `session_cutoffs` on MongoDB (D9). */
export function mongoCutoffs(db: Db): SessionCutoffStore & StoredPart {
  const collection = openCollection<CutoffDocument>(db, 'session_cutoffs')

  async function moveForward(accountId: string, cutoff: Omit<CutoffDocument, '_id'>) {
    const write = () =>
      collection.updateOne({ _id: text(accountId) }, { $max: cutoff }, { upsert: true })
    try {
      await write()
    } catch (error) {
      if (!isDuplicateKey(error)) throw error
      // Another caller inserted the record between this one's look and its insert: now there is one to update.
      await write()
    }
  }

  return {
    ...storedPart(collection),

    async read(accountId) {
      const document = await collection.findOne({ _id: text(accountId) })
      if (!document) return undefined
      return { idpAt: cutoff(document.idp_at), oauthAt: cutoff(document.oauth_at) }
    },

    async endOAuthSessions(accountId, at) {
      await moveForward(accountId, { oauth_at: time(at) })
    },

    async endIdpSessions(accountId, at) {
      await moveForward(accountId, { idp_at: time(at) })
    },
  }
}

/** Throws for anything but a time: to answer "nothing was ended" would revive ended sessions. */
function cutoff(value: Date | undefined): Date | undefined {
  return value === undefined ? undefined : time(value)
}
