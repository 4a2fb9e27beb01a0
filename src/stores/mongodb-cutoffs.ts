import type { Db, Document } from 'mongodb'
import type { SessionCutoffs, SessionCutoffStore } from '../ports.ts'
import { KEPT_PASSWORDS } from './memory-cutoffs.ts'
import { openCollection } from './mongodb-collection.ts'
import { text, time } from './mongodb-conditions.ts'
import { isDuplicateKey } from './mongodb-errors.ts'
import { storedPart, type StoredPart } from './mongodb-indexes.ts'

interface CutoffDocument {
  _id: string
  idp_at?: Date
  oauth_at?: Date
  login_at?: Date
  idp_passwords?: string[]
  oauth_passwords?: string[]
}

/** `session_cutoffs` on MongoDB (D9). */
export function mongoCutoffs(db: Db): SessionCutoffStore & StoredPart {
  const collection = openCollection<CutoffDocument>(db, 'session_cutoffs')

  async function change(accountId: string, update: Document | Document[]) {
    const write = () =>
      collection.findOneAndUpdate({ _id: text(accountId) }, update, {
        upsert: true,
        returnDocument: 'after',
      })
    try {
      return await write()
    } catch (error) {
      if (!isDuplicateKey(error)) throw error
      // Another caller inserted the record between this one's look and its insert: now there is one to update.
      return write()
    }
  }

  const end =
    (kind: 'idp' | 'oauth') =>
    async (accountId: string, at: Date, endedPassword?: string): Promise<SessionCutoffs> => {
      const [endedAt, passwords] = [`$${kind}_at`, { $ifNull: [`$${kind}_passwords`, []] }]
      const moved = { $max: [endedAt, time(at), '$login_at'] }
      const isKept = { $in: [{ $literal: endedPassword }, passwords] }
      const isRepeated = { $and: [isKept, { $lte: [time(at), endedAt] }] }
      const more = {
        $slice: [{ $concatArrays: [[{ $literal: endedPassword }], passwords] }, KEPT_PASSWORDS],
      }
      const changed = await change(accountId, [
        {
          $set:
            endedPassword === undefined
              ? { [`${kind}_at`]: moved }
              : {
                  [`${kind}_at`]: { $cond: [isRepeated, endedAt, moved] },
                  [`${kind}_passwords`]: { $cond: [isKept, passwords, more] },
                },
        },
      ])
      return cutoffsOf(changed) ?? { idpAt: undefined, oauthAt: undefined, endedPasswords: [] }
    }

  return {
    ...storedPart(collection),

    async read(accountId) {
      return cutoffsOf(await collection.findOne({ _id: text(accountId) }))
    },

    async noteLogin(accountId, at) {
      return cutoffsOf(await change(accountId, { $max: { login_at: time(at) } }))
    },

    endOAuthSessions: end('oauth'),
    endIdpSessions: end('idp'),
  }
}

function cutoffsOf(document: CutoffDocument | null): SessionCutoffs | undefined {
  if (document?.idp_at === undefined && document?.oauth_at === undefined) return undefined
  const { idp_at, oauth_at, idp_passwords = [], oauth_passwords = [] } = document
  const endedPasswords = [...new Set([...oauth_passwords, ...idp_passwords])]
  return { idpAt: cutoff(idp_at), oauthAt: cutoff(oauth_at), endedPasswords }
}

/** Throws for anything but a time: to answer "nothing was ended" would revive ended sessions. */
function cutoff(value: Date | undefined): Date | undefined {
  return value === undefined ? undefined : time(value)
}
