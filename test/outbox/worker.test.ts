import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'chai'
import type { MailJob } from '../../src/index.ts'
import type { SendTurn } from '../../src/outbox/send-turn.ts'
import { createOutboxWorker } from '../../src/outbox/worker.ts'
import { memoryOutbox } from '../../src/stores/memory/outbox.ts'
import { eventually } from '../support/eventually.ts'
import { systemClock } from '../../src/clock.ts'

const JOB = {
  kind: 'password_reset',
  identifier: 'ann',
  accountId: undefined,
  pendingLoginId: undefined,
  carried: {},
  requester: { address: undefined, userAgent: undefined },
} as const

function collectGarbage() {
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  if (typeof collect === 'function') collect()
}

describe('The worker of the outbox', () => {
  it('ends every attempt at its deadline, whatever the garbage collector does', async () => {
    const outbox = memoryOutbox(systemClock)
    const ended: unknown[] = []
    const worker = createOutboxWorker({
      outbox,
      async resolve(job) {
        const heldUntil = new Date(Date.now() + 60_000)
        await outbox.resolve(job, job.id, new Date(), heldUntil)
        return { ...job, heldUntil }
      },
      send: (_job: MailJob, { take }: SendTurn) =>
        take(
          (signal) =>
            new Promise<void>((resolve) => {
              signal.addEventListener('abort', () => {
                ended.push(signal.reason)
                resolve()
              })
            }),
        ),
      async expire() {},
      canSend: () => true,
      clock: systemClock,
      log() {},
      attemptMs: 60,
    })
    for (const id of ['a', 'b', 'c', 'd', 'e']) {
      const expiresAt = new Date(Date.now() + 3_600_000)
      await outbox.add({ ...JOB, id, notBefore: new Date(), expiresAt })
    }
    worker.start()
    const garbage = setInterval(collectGarbage, 5)
    try {
      await eventually('all attempts are over', () => ended.length === 5)
    } finally {
      clearInterval(garbage)
      await worker.stop(1_000)
    }
    for (const reason of ended) expect(reason).to.include({ name: 'TimeoutError' })
  })
})
