import { ANY, type Change, type Kind, type RecordStore } from '../ports/record-store.ts'

/** So many are removed at a time. */
const AT_ONCE = 500

/** Removes what is over, where the database does not do so by itself. What was changed meanwhile stays. */
export async function purge(store: RecordStore, kinds: readonly Kind[]): Promise<void> {
  if (store.purges) return
  const below = await store.now()
  for (const kind of kinds) {
    if (kind.purgedAt === undefined) continue
    for (let isMore = true; isMore;) {
      const over = await store.find(kind, { by: kind.purgedAt, below, limit: AT_ONCE })
      const changes = over.map(({ id, revision }): Change => ({
        id,
        // A damaged one may have none.
        revision: revision || ANY,
        next: undefined,
        becomes: '',
      }))
      const done = changes.length > 0 ? await store.swap(kind, changes) : []
      isMore = over.length === AT_ONCE && done.includes(true)
    }
  }
}
