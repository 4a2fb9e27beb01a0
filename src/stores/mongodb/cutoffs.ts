import type { Document } from 'mongodb'
import type { SessionCutoffs, SessionCutoffStore } from '../../ports/index.ts'
import type { OpenCollection } from './collection.ts'
import { text, time } from './conditions.ts'
import { isDuplicateKey } from './errors.ts'
import { type DocumentOf, fromDocument, hasTypes } from './fields.ts'
import { storedPart, type StoredPart } from './indexes.ts'
import { foundTogether } from './together.ts'
import { ENDS_KEPT } from '../state/cutoffs.ts'

const types = {
  idpAt: 'date|undefined',
  oauthAt: 'date|undefined',
  exactIdpAt: 'date?',
  exactOauthAt: 'date?',
} as const

interface CutoffDocument extends DocumentOf<typeof types> {
  _id: string
  /** The latest ends, so that each moves it once. */
  idp_ends?: string[]
  oauth_ends?: string[]
}

export function mongoCutoffs(open: OpenCollection): SessionCutoffStore & StoredPart {
  const collection = open<CutoffDocument>('session_cutoffs')

  const read = foundTogether<CutoffDocument>(collection, '_id')

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

  return {
    ...storedPart(collection),

    async read(accountId) {
      return cutoffsOf(await read(text(accountId)))
    },

    async end(accountId, kind, { id, at, isExact }) {
      const [endedAt, ends] = [`${kind}_at`, `${kind}_ends`]
      const isThere = { $eq: [{ $type: `$${endedAt}` }, 'date'] }
      const after = { $add: [`$${endedAt}`, 1] }
      const moved = { $max: [time(at), { $cond: [isThere, after, null] }] }
      const before = { $cond: [{ $isArray: `$${ends}` }, `$${ends}`, []] }
      const literal = { $literal: text(id) }
      const isRepeated = { $in: [literal, before] }
      const all = { $slice: [{ $concatArrays: [before, [literal]] }, -ENDS_KEPT] }
      const once = {
        [endedAt]: { $cond: [isRepeated, `$${endedAt}`, moved] },
        [ends]: { $cond: [isRepeated, before, all] },
      }
      const exact = { [`exact_${endedAt}`]: { $max: [`$exact_${endedAt}`, at] } }
      const changed = await change(accountId, [{ $set: isExact ? exact : once }])
      return cutoffsOf(changed) ?? { idpAt: undefined, oauthAt: undefined }
    },
  }
}

/** Throws for anything but times: to answer "nothing was ended" would revive ended sessions. */
function cutoffsOf(document: CutoffDocument | null | undefined): SessionCutoffs | undefined {
  if (!document) return undefined
  if (!hasTypes(document, types)) throw new TypeError('A cut-off must be a valid time')
  const ends = fromDocument(document, types)
  return Object.values(ends).some(Boolean) ? ends : undefined
}
