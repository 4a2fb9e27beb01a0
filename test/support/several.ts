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
