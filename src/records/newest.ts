/** Sets a value as the newest of a map. `undefined`: it goes. Of more than `most`, the oldest goes. */
export function setNewest<Key, Value>(
  map: Map<Key, Value>,
  key: Key,
  value: Value | undefined,
  most: number,
): void {
  map.delete(key)
  if (value !== undefined) map.set(key, value)
  const [oldest] = map.keys()
  if (map.size > most && oldest !== undefined) map.delete(oldest)
}
