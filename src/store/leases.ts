/** A queue of jobs in a table. Only one worker holds a job at a time. */
import { newId } from '../crypto/token.ts'
import type { Table } from './table.ts'

/** `leaseId` names the claim. `undefined`: no worker holds the job. */
type Job = { id: string; leaseId?: string | undefined }

export function queueOf<J extends Job>(jobs: Table<J>) {
  return {
    /** Claims these jobs as `hold` returns them; `undefined`: the job is not due any more. Only one caller gets each job. */
    async claim<Held extends J>(found: readonly J[], hold: (job: J) => Held | undefined) {
      const leaseId = newId()
      const claims = found.map((one) =>
        jobs.take(one, (job) => {
          const held = hold(job)
          return held && { ...held, leaseId }
        }),
      )
      return (await Promise.all(claims)).filter((job) => job !== undefined)
    },

    /** Changes a job if the caller still holds it. Returns whether it changed. */
    settle: ({ id, leaseId }: Job, change: (job: J) => J | undefined): Promise<boolean> =>
      jobs.update(id, (job) => (job.leaseId === leaseId ? change(job) : job)),
  }
}
