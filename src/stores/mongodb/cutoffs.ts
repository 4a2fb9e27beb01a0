import type { Db, Document } from 'mongodb'
import type { SessionCutoffs, SessionCutoffStore } from '../../ports/index.ts'
import { openCollection } from './collection.ts'
import { text, time } from './conditions.ts'
import { isDuplicateKey } from './errors.ts'
import { storedPart, type StoredPart } from './indexes.ts'

interface CutoffDocument {
  _id: string
  idp_at?: Date
  oauth_at?: Date
  idp_asked_at?: Date
  oauth_asked_at?: Date
}

/** `session_cutoffs` on MongoDB. */
export function mongoCutoffs(db: Db): SessionCutoffStore & StoredPart {
  const collection = openCollection<CutoffDocument>(db, 'session_cutoffs')

  async function change(accountId: string, update: Document[]) {
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
    async (accountId: string, at: Date, isExact = false): Promise<SessionCutoffs> => {
      const [endedAt, askedAt] = [`${kind}_at`, `${kind}_asked_at`]
      const isThere = { $eq: [{ $type: `$${endedAt}` }, 'date'] }
      const after = { $add: [`$${endedAt}`, isExact ? 0 : 1] }
      const moved = { $max: [time(at), { $cond: [isThere, after, null] }] }
      const isRepeated = { $eq: [`$${askedAt}`, time(at)] }
      const changed = await change(accountId, [
        { $set: { [endedAt]: { $cond: [isRepeated, `$${endedAt}`, moved] }, [askedAt]: time(at) } },
      ])
      return cutoffsOf(changed) ?? { idpAt: undefined, oauthAt: undefined }
    }

  return {
    ...storedPart(collection),

    async read(accountId) {
      return cutoffsOf(await collection.findOne({ _id: text(accountId) }))
    },

    endOAuthSessions: end('oauth'),
    endIdpSessions: end('idp'),
  }
}

function cutoffsOf(document: CutoffDocument | null): SessionCutoffs | undefined {
  if (document?.idp_at === undefined && document?.oauth_at === undefined) return undefined
  return { idpAt: cutoff(document.idp_at), oauthAt: cutoff(document.oauth_at) }
}

/** Throws for anything but a time: to answer "nothing was ended" would revive ended sessions. */
function cutoff(value: Date | undefined): Date | undefined {
  return value === undefined ? undefined : time(value)
}
