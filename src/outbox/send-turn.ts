import { timeout, type Clock } from '../clock.ts'
import { MOST_CONNECTIONS } from '../ports/mails.ts'
import { createSlots } from './slots.ts'

/** So many mails are made ready at once while others leave. */
const READY_AT_ONCE = 30
/** So many of them at a time: their tokens are stored by one command. */
const WAVE = 10
/** Mails leave, if one did so long ago at most; less than a request waits before it is taken. */
const FLOWING_MS = 40
/** A mail that no connection got free for goes to a process that has one. */
const IN_LINE_MS = 20_000
/** No answer of the mail server takes longer than this. */
const ATTEMPT_MS = 30_000
/** How long a job is held to be sent: longer than the time in line and the attempt together. */
export const SEND_LEASE_MS = 60_000

/** One mail's turn at the few connections. */
export interface SendTurn {
  /**
   * Sends once a connection is free, or will be in a moment, as mails leave. The signal is aborted at the deadline of the attempt, and
   * when the worker cannot wait for it any more. `undefined`: none got free in time, or the worker stops; nothing was tried.
   */
  take<Sent>(
    send: (signal: AbortSignal, isFlowing: boolean) => Promise<Sent>,
  ): Promise<Sent | undefined>
  /** Whether the job is to be given back because the worker stops. */
  isStopping(): boolean
}

/** @param attemptMs - how long one try may take; 30 s by default. */
export function createSendTurns(
  clock: Clock,
  attemptMs = ATTEMPT_MS,
): (stop: AbortSignal) => SendTurn {
  const slots = createSlots(clock, () =>
    isFlowing() ? { most: READY_AT_ONCE, wave: WAVE } : { most: MOST_CONNECTIONS, wave: 1 },
  )
  let lastSentAt = -FLOWING_MS
  const isFlowing = () => Math.abs(clock.now().getTime() - lastSentAt) < FLOWING_MS

  return (stop) => ({
    isStopping: () => stop.aborted,

    async take(send) {
      if (!(await slots.enter(IN_LINE_MS, stop))) return undefined
      const attempt = new AbortController()
      const { signal: late, cancel } = timeout(clock, attemptMs)
      // Not `AbortSignal.any`: in Node 20 the collector takes a time-out before its time.
      for (const end of [stop, late]) {
        end.addEventListener('abort', () => attempt.abort(end.reason), { signal: attempt.signal })
        if (end.aborted) attempt.abort(end.reason)
      }
      try {
        const sent = await send(attempt.signal, isFlowing())
        if (typeof sent === 'object') lastSentAt = clock.now().getTime()
        return sent
      } catch (error) {
        lastSentAt = -FLOWING_MS
        throw error
      } finally {
        cancel()
        attempt.abort('over')
        slots.leave()
      }
    },
  })
}
