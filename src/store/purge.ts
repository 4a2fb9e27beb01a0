import type { Change, Kind, RecordStore } from './record-store.ts'
import { revisionOf } from './changes.ts'

/** So many are removed at a time. */
const AT_ONCE = 500

/** Removes what is over, where the database does not do so by itself. What was changed meanwhile stays. */
export async function purge(store: RecordStore, kinds: readonly Kind[]): Promise<void> {
  if (store.purges) return
  const below = await store.now()
  for (const kind of kinds.filter(({ purgedAt }) => purgedAt !== undefined)) {
    for (let isMore = true; isMore;) {
      const over = await store.find(kind, { by: `${kind.purgedAt}`, below, limit: AT_ONCE })
      const changes = over.map((found): Change => {
        return { id: found.id, revision: revisionOf(found), next: undefined, becomes: '' }
      })
      const done = changes.length > 0 ? await store.swap(kind, changes) : []
      isMore = over.length === AT_ONCE && done.includes(true)
    }
  }
}
