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
    /** Takes those that still are due, each for one caller. @param held - the job as it is while it is held. */
    async claim(found: readonly J[], isDue: (job: J) => boolean, held: (job: J) => J) {
      const leaseId = newId()
      const claims = found.map((one) =>
        jobs.change(one, (job) => {
          if (!job || !isDue(job)) return { next: job, answer: undefined }
          const next = { ...held(job), leaseId }
          return { next, answer: next }
        }),
      )
      return (await Promise.all(claims)).filter((job) => job !== undefined)
    },

    /** Changes a job for its holder; for whoever held it before, nothing. Answers whether the caller holds it. */
    settle: ({ id, leaseId }: Job, change: (job: J) => J | undefined): Promise<boolean> =>
      jobs.update(id, (job) => (job.leaseId === leaseId ? change(job) : job)),
  }
}
