import { describeWithMongo, describeWithReplicaSet, type Topology } from '../support/mongod.ts'

export const TOPOLOGIES: Topology[] = ['standalone', 'replica set']

/** One suite that works with both, side by side. */
export function describeOnBothTopologies(title: string, body: () => void): void {
  describeWithMongo(title, () => describeWithReplicaSet('and side by side with it', body))
}
