import { timeout, type Clock } from '../../clock.ts'
import { MAX_CONNECTIONS, type MailConnection, type MailSender } from '../sending.ts'
import { errorOf } from './answers.ts'

/** How many mails are made ready at once while others leave. */
const READY_AT_ONCE = 30
/** How many of them start together, so that one command stores their tokens. */
const WAVE = 10
/** Mails are flowing if one left within this time. It is shorter than the wait before a request is taken. */
const FLOWING_MS = 40
/** A mail that waited longer for its place is given back: another process may have a free one. */
const IN_LINE_MS = 20_000
/** No answer of the mail server takes longer than this. */
const ATTEMPT_MS = 30_000

/** The other end of a place: an SMTP server, or the transport of the host. */
export interface Peer {
  open(signal: AbortSignal): Promise<OpenConnection>
  /** Closes the idle connections at once. */
  close(): void
}

interface OpenConnection extends MailConnection {
  /** Resolves once another connection may open in its place. It never rejects. */
  end(): Promise<void>
}

/** The one line of all mails to a peer. */
export interface Line extends Omit<MailSender, 'canSend'> {
  isEmpty(): boolean
}

/** @param peerOf - gets the gate of open connections. A connection that is closing still counts. */
export function createLine(clock: Clock, peerOf: (connections: Gate) => Peer): Line {
  const connections = createGate(() => ({ most: MAX_CONNECTIONS, wave: 1 }))
  const { open, close } = peerOf(connections)
  const places = createGate(() =>
    isFlowing() ? { most: READY_AT_ONCE, wave: WAVE } : { most: MAX_CONNECTIONS, wave: 1 },
  )
  let sentAt = -Infinity
  const now = () => clock.now().getTime()
  const isFlowing = () => Math.abs(now() - sentAt) < FLOWING_MS

  async function openOne(signal: AbortSignal): Promise<OpenConnection> {
    if (!(await connections.enter(signal))) {
      throw errorOf(undefined, signal, 'waiting for a free connection')
    }
    const connection = await open(signal).catch((error: unknown) => {
      connections.leave()
      throw error
    })
    return {
      async send(mail) {
        const sent = await connection.send(mail)
        sentAt = now()
        return sent
      },
      end: () => connection.end().then(connections.leave),
    }
  }

  return {
    async withPlace(stop, work) {
      const since = now()
      if (!(await places.enter(stop))) return undefined
      const { signal, cancel } = timeout(clock, ATTEMPT_MS, stop)
      let connection: OpenConnection | undefined
      const open = async () => (connection ??= await openOne(signal))
      try {
        // Every attempt ends, so no mail is in line for much longer.
        if (now() - since > IN_LINE_MS) return undefined
        return await work({ isFlowing: isFlowing(), open })
      } catch (error) {
        sentAt = -Infinity
        throw error
      } finally {
        // The connection ends before the signal aborts, so that a good one stays.
        void connection?.end()
        cancel()
        places.leave()
      }
    },

    isEmpty: () => places.isEmpty() && connections.isEmpty(),
    close,
  }
}

export type Gate = ReturnType<typeof createGate>

/** Lets in a limited number at once, which may change. The others wait in line, and come in once a wave of places is free. */
function createGate(room: () => { most: number; wave: number }) {
  const line = new Set<() => void>()
  let inside = 0
  const hasRoom = () => inside < room().most

  return {
    hasRoom,

    /** `false`: the signal aborted before there was room. */
    async enter(signal: AbortSignal): Promise<boolean> {
      if (signal.aborted) return false
      if (line.size === 0 && hasRoom()) {
        inside += 1
        return true
      }
      let goOn = () => {}
      const waiting = new Promise<void>((resolve) => (goOn = resolve))
      line.add(goOn)
      signal.addEventListener('abort', goOn)
      await waiting
      signal.removeEventListener('abort', goOn)
      return !line.delete(goOn)
    },

    /** Comes in past the line. */
    take() {
      inside += 1
    },

    leave() {
      inside -= 1
      const { most, wave } = room()
      if (most - inside < wave) return
      for (const goOn of line) {
        if (inside >= most) return
        inside += 1
        line.delete(goOn)
        goOn()
      }
    },

    isEmpty: () => inside === 0,
  }
}
