/** Removes what nobody needs any more: in memory the place of the TTL index. */
export function purge(records: Map<string, { purgeAt: Date }>, at: Date): void {
  for (const [id, { purgeAt }] of records) if (purgeAt <= at) records.delete(id)
}

const MOST = 10_000

/** Of too many, the oldest are forgotten: it is for development, and anybody can send forms. */
export function keepNewest<E>(records: Map<string, E>, id: string, record: E): void {
  records.set(id, record)
  const [oldest] = records.keys()
  if (records.size > MOST && oldest !== undefined) records.delete(oldest)
}
