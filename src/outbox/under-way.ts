/** Work under way, by its key. */
export interface UnderWay {
  /** Answers what the work answers. */
  during<T>(key: string, work: Promise<T>): Promise<T>
  /** Resolves once all is over that is under way now, whatever became of it. */
  over(key: string): Promise<unknown>
}

export function createUnderWay(): UnderWay {
  const latest = new Map<string, Promise<unknown>>()

  return {
    during(key, work) {
      const all = Promise.allSettled([latest.get(key), work])
      latest.set(key, all)
      void all.then(() => latest.get(key) === all && latest.delete(key))
      return work
    },

    over: async (key) => latest.get(key),
  }
}
