/** Jobs that workers take, each for one of them at a time. */
import { newId } from '../crypto/token.ts'
import type { Table } from './table.ts'

interface Job {
  id: string
  /** Names the claim. `undefined`: nobody holds it. */
  leaseId?: string | undefined
}

export function queueOf<J extends Job>(jobs: Table<J>) {
  return {
    /** Claims the jobs that still are due. One caller gets each. @param hold - makes a job a held one. */
    async claim(found: readonly J[], isDue: (job: J) => boolean, hold: (job: J) => J) {
      const leaseId = newId()
      const claims = found.map((one) =>
        jobs.change(one, (job) => {
          if (!job || !isDue(job)) return { next: job, answer: undefined }
          const next = { ...hold(job), leaseId }
          return { next, answer: next }
        }),
      )
      return (await Promise.all(claims)).filter((job) => job !== undefined)
    },

    /** Changes a job if the caller still holds it. Answers whether it changed. */
    settle: ({ id, leaseId }: Job, change: (job: J) => J | undefined): Promise<boolean> =>
      jobs.update(id, (job) => (job.leaseId === leaseId ? change(job) : job)),
  }
}
