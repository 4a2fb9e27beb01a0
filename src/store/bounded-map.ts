/** Sets a value as the newest of a map. If the map then holds more than `most` values, the oldest goes. */
export function setNewest<Key, Value>(map: Map<Key, Value>, key: Key, value: Value, most: number) {
  map.delete(key)
  map.set(key, value)
  const [oldest] = map.keys()
  if (map.size > most && oldest !== undefined) map.delete(oldest)
}
