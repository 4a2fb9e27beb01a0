import type { Topology } from '../support/mongod-servers.ts'
import { describeWithMongo, describeWithReplicaSet } from '../support/mongod.ts'

export const TOPOLOGIES: Topology[] = ['standalone', 'replica set']

/** One suite that works with both, side by side. */
export function describeOnBothTopologies(title: string, body: () => void): void {
  describeWithMongo(title, () => describeWithReplicaSet('and side by side with it', body))
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
