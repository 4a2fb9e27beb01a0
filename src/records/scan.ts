import { checkLimit } from '../ports/record-store.ts'
import type { QueryOf, Table } from './table.ts'

/** So many are read at a time. */
const PAGE = 200

/**
 * The first records of a query that are wanted, at most `limit`. It reads on until there are so many, or no more.
 *
 * @param query - with a field to order by, which each of its records has.
 */
export async function firstWanted<T extends { id: string }>(
  table: Table<T>,
  query: Omit<QueryOf<T>, 'limit'> & Required<Pick<QueryOf<T>, 'by'>>,
  limit: number,
  isWanted: (record: T) => boolean,
): Promise<T[]> {
  checkLimit(limit)
  const wanted: T[] = []
  let most = PAGE
  for (let after = query.after; wanted.length < limit;) {
    const page = await table.findAll({ ...query, ...(after && { after }), limit: most })
    const readable = page.flatMap(({ record }) => record ?? [])
    wanted.push(...readable.filter(isWanted))
    const last = readable.at(-1)
    const value = last?.[query.by]
    if (page.length < most) break
    // Of damaged records alone: one that tells where to go on stands behind them.
    if (value instanceof Date) after = { value, id: last?.id ?? '' }
    else most *= 2
  }
  return wanted.slice(0, limit)
}
