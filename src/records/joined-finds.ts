import type { Kind, Query, RecordStore, Stored } from '../ports/record-store.ts'

type Found = [query: Query, stored: Stored[]]

/** Queries that differ in one value alone are one command. */
export async function findAll(
  store: RecordStore,
  kind: Kind,
  queries: Query[],
): Promise<Stored[][]> {
  const groups = new Map<string, Query[]>()
  for (const query of queries) {
    const key = groupOf(query)
    groups.set(key, [...(groups.get(key) ?? []), query])
  }
  const finds = [...groups.values()].map((group) => findOfGroup(store, kind, group))
  const found = new Map((await Promise.all(finds)).flat())
  return queries.map((query) => found.get(query) ?? [])
}

const oneText = ({ equal = {} }: Query): [field: string, value: string] | undefined => {
  const [[field, value] = [], ...others] = Object.entries(equal)
  return others.length === 0 && field !== undefined && typeof value === 'string'
    ? [field, value]
    : undefined
}

/** What queries have in common that can share a command. */
function groupOf(query: Query): string {
  const { equal, ...rest } = query
  return JSON.stringify([oneText(query)?.[0] ?? equal, rest])
}

async function findOfGroup(store: RecordStore, kind: Kind, group: Query[]): Promise<Found[]> {
  const alone = async (query: Query): Promise<Found> => [query, await store.find(kind, query)]
  const [first] = group
  const field = first && oneText(first)?.[0]
  if (!first || group.length === 1 || field === undefined) return Promise.all(group.map(alone))
  const values = [...new Set(group.map((query) => oneText(query)?.[1] ?? ''))]
  const limit = first.limit * values.length
  const found = await store.find(kind, { ...first, equal: { [field]: values }, limit })
  // Whose a damaged record is, nobody knows.
  if (found.some(({ fields }) => !fields)) return Promise.all(group.map(alone))
  const answers = group.map(async (query): Promise<Found> => {
    const [, value] = oneText(query) ?? []
    const own = found.filter(({ fields }) => fields?.[field] === value).slice(0, first.limit)
    // Others may have taken the places of more.
    const isCut = found.length === limit && own.length < first.limit
    return isCut ? alone(query) : [query, own]
  })
  return Promise.all(answers)
}
