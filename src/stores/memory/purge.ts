/** Removes what nobody needs any more: in memory the place of the TTL index. */
export function purge(records: Map<string, { purgeAt: Date }>, at: Date): void {
  for (const [id, { purgeAt }] of records) if (purgeAt <= at) records.delete(id)
}
