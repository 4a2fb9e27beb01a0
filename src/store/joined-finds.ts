import type { Kind, Query, RecordStore, Stored } from './record-store.ts'

/** What queries are found by that ask for the same, each for another text of one field. */
interface Group {
  texts: Set<string>
  found?: Promise<Stored[]>
}

/** Queries that differ in one value alone are one command. */
export function findAll(store: RecordStore, kind: Kind, queries: Query[]): Promise<Stored[][]> {
  const groups = new Map<string, Group>()
  const asked = queries.map((query) => {
    const { equal = {}, ...rest } = query
    const [[field, text] = [], ...others] = Object.entries(equal)
    if (field === undefined || typeof text !== 'string' || others.length > 0) return { query }
    const key = JSON.stringify([field, rest])
    const group = groups.get(key) ?? { texts: new Set() }
    groups.set(key, group)
    group.texts.add(text)
    return { query, one: { field, text, group } }
  })
  const answers = asked.map(async ({ query, one }) => {
    if (!one) return store.find(kind, query)
    const { field, text, group } = one
    const texts = [...group.texts]
    if (texts.length === 1) return (group.found ??= store.find(kind, query))
    const limit = query.limit * texts.length
    const found = await (group.found ??= store.find(kind, {
      ...query,
      equal: { [field]: texts },
      limit,
    }))
    const own = found.filter(({ fields }) => fields?.[field] === text).slice(0, query.limit)
    // Whose a damaged record is, nobody knows; and others may have taken the places of more.
    const isWhole = found.length < limit || own.length === query.limit
    return isWhole && found.every(({ fields }) => fields) ? own : store.find(kind, query)
  })
  return Promise.all(answers)
}
