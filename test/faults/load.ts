import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Starts `count` requests at a steady rate, whether or not the earlier ones were answered, and waits for all answers. A request
 * that throws ends the load with its error.
 */
export async function steadyLoad<T>(
  { perSecond, count }: { perSecond: number; count: number },
  request: (index: number) => Promise<T>,
): Promise<T[]> {
  const startedAt = performance.now()
  const answers: Promise<T>[] = []

  for (let index = 0; index < count; index += 1) {
    const dueAt = startedAt + (index * 1000) / perSecond
    const early = dueAt - performance.now()
    if (early > 0) await sleep(early)
    const answer = request(index)
    // Awaited below, all together; until then a failure is not unheard of.
    answer.catch(() => {})
    answers.push(answer)
  }
  return Promise.all(answers)
}

/** Does the work for all, at most so many at once; answers in their order. */
export async function several<T, R>(
  all: T[],
  atOnce: number,
  work: (item: T, index: number) => Promise<R>,
): Promise<R[]> {
  const results: R[] = []
  const entries = all.entries()
  const worker = async () => {
    for (const [index, item] of entries) results[index] = await work(item, index)
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  return results
}
