import { randomUUID } from 'node:crypto'
import { time } from './conditions.ts'

interface LeasedCollection<T> {
  updateMany(filter: object, update: object): Promise<unknown>
  find(filter: object): { toArray(): Promise<T[]> }
}

/** Takes those of the records that are due still, and holds them until then: each is given to one caller. */
export async function leased<T>(
  collection: LeasedCollection<T>,
  records: { _id: string }[],
  { due, heldUntil, attempts }: { due: object; heldUntil: Date; attempts: number },
): Promise<T[]> {
  if (records.length === 0) return []
  const leaseId = randomUUID()
  const ids = { _id: { $in: records.map(({ _id }) => _id) } }
  await collection.updateMany(
    { ...ids, ...due },
    { $set: { lease_id: leaseId, available_at: time(heldUntil) }, $inc: { attempts } },
  )
  return collection.find({ ...ids, lease_id: leaseId }).toArray()
}
