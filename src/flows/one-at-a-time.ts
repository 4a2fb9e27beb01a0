/**
 * Answers a function that does what has the same key one after the other, in the order in which it came, whatever became of the
 * one before. Other keys do not wait, nor do other processes.
 */
export function oneAtATime() {
  const latest = new Map<string, Promise<unknown>>()

  return async <T>(key: string, work: () => Promise<T>): Promise<T> => {
    const before = latest.get(key)
    const mine = before ? before.then(work, work) : work()
    latest.set(key, mine)
    try {
      return await mine
    } finally {
      if (latest.get(key) === mine) latest.delete(key)
    }
  }
}
