/** The few connections to a mail server. Mails wait here for a slot, and are made ready while others leave. */
import { timeout, type Clock } from '../../clock.ts'
import type { MailSender, MailSlot, OutgoingMail } from '../sending.ts'
import { errorOf } from './answers.ts'

/** The most open connections to one mail server. */
const MAX_CONNECTIONS = 5
/** How many mails are made ready at once while others leave. */
const READY_AT_ONCE = 30
/** How many of them start together, so that one command stores their tokens. */
const BATCH = 10
/** Mails are flowing if one left within this time. A new job is due later than that, so a lone request first opens its connection. */
const FLOWING_MS = 40
/** A mail that waited longer for a slot is given back: another process may have a free one. */
const MAX_WAIT_MS = 20_000
/** No answer of the mail server takes longer than this. */
const ATTEMPT_MS = 30_000

/** Where the mails go: an SMTP server, or the transport of the host. */
export interface Peer {
  open(signal: AbortSignal): Promise<OpenConnection>
  /** Closes the idle connections at once. */
  close(): void
}

interface OpenConnection extends Pick<MailSlot, 'send'> {
  /** Resolves once another connection may open in its place. It never rejects. */
  end(): Promise<void>
}

export interface Pool extends Omit<MailSender, 'canSend'> {
  isEmpty(): boolean
}

/** @param peerOf - gets the count of open connections. A connection that is closing still counts. */
export function createPool(clock: Clock, peerOf: (connections: Semaphore) => Peer): Pool {
  const connections = createSemaphore(() => ({ max: MAX_CONNECTIONS, batch: 1 }))
  const { open, close } = peerOf(connections)
  const slots = createSemaphore(() =>
    isFlowing() ? { max: READY_AT_ONCE, batch: BATCH } : { max: MAX_CONNECTIONS, batch: 1 },
  )
  let sentAt = -Infinity
  const now = () => clock.now().getTime()
  const isFlowing = () => Math.abs(now() - sentAt) < FLOWING_MS

  async function openOne(signal: AbortSignal): Promise<OpenConnection> {
    if (!(await connections.acquire(signal))) {
      throw errorOf(undefined, signal, 'waiting for a free connection')
    }
    return open(signal).catch((error: unknown) => {
      connections.release()
      throw error
    })
  }

  return {
    async withSlot(stop, work) {
      const since = now()
      if (!(await slots.acquire(stop))) return undefined
      const { signal, cancel } = timeout(clock, ATTEMPT_MS, stop)
      let connection: OpenConnection | undefined
      const openOwn = async () => (connection ??= await openOne(signal))
      async function send(mail: OutgoingMail) {
        const { send } = await openOwn()
        const sent = await send(mail)
        sentAt = now()
        return sent
      }
      try {
        // Every attempt ends, so no mail waits much longer.
        if (now() - since > MAX_WAIT_MS) return undefined
        return await work({ isFlowing: isFlowing(), open: openOwn, send })
      } catch (error) {
        sentAt = -Infinity
        throw error
      } finally {
        // The connection ends before the signal aborts, so that a good one stays.
        void connection?.end().then(connections.release)
        cancel()
        slots.release()
      }
    },

    isEmpty: () => slots.isEmpty() && connections.isEmpty(),
    close,
  }
}

export type Semaphore = ReturnType<typeof createSemaphore>

/** Lets in a limited number at once, which may change. The others wait in a queue, until there is room for a batch. */
function createSemaphore(limit: () => { max: number; batch: number }) {
  const queue = new Set<() => void>()
  let count = 0
  const hasRoom = () => count < limit().max

  return {
    hasRoom,

    /** `false`: the signal aborted before there was room. */
    async acquire(signal: AbortSignal): Promise<boolean> {
      if (signal.aborted) return false
      if (queue.size === 0 && hasRoom()) {
        count += 1
        return true
      }
      let goOn = () => {}
      const waiting = new Promise<void>((resolve) => (goOn = resolve))
      queue.add(goOn)
      signal.addEventListener('abort', goOn)
      await waiting
      signal.removeEventListener('abort', goOn)
      return !queue.delete(goOn)
    },

    /** Counts one more, past the queue and the limit. */
    add() {
      count += 1
    },

    release() {
      count -= 1
      const { max, batch } = limit()
      if (max - count < batch) return
      for (const goOn of queue) {
        if (count >= max) return
        count += 1
        queue.delete(goOn)
        goOn()
      }
    },

    isEmpty: () => count === 0,
  }
}
