import { timeout, type Clock } from '../../clock.ts'
import { AccountFlowsError } from '../../errors.ts'
import type { MailSender, MailTransport } from '../../contract/index.ts'
import type { Settings } from '../../settings/table.ts'
import { createAccessTokens, tokenKey, type RefreshTokens } from './access-tokens.ts'
import { nodemailer } from './compose.ts'
import { createMailServer } from './server.ts'
import { smtpSettings, type SmtpSettings } from './settings.ts'
import { handOver, isInUse } from './transport.ts'
import { MOST_CONNECTIONS, type MailConnection, type MailPlace } from '../../contract/mails.ts'
import { errorOf } from './answers.ts'

export function createMailSender(
  settings: () => Settings,
  clock: Clock,
  refreshTokens: RefreshTokens,
  transport?: MailTransport,
): MailSender {
  if (!transport) nodemailer()
  const all = new Map<string, Line>()
  const tokens = createAccessTokens(clock, refreshTokens)
  const toTransport = transport && createLine(clock, transportPeer(transport, settings))

  // Each set of SMTP settings, the credentials included, has its own; the connections of the others are closed. A line is kept
  // until it is empty, so that settings that come back find its connections, and not five more.
  function toServer(configured: SmtpSettings): Line {
    const { oauth, ...others } = configured
    const key = JSON.stringify([others, oauth && tokenKey(oauth)])
    for (const [other, line] of all) {
      if (other === key) continue
      line.close()
      if (line.isEmpty()) all.delete(other)
    }
    const line = all.get(key) ?? createLine(clock, createMailServer(configured, clock, tokens))
    all.set(key, line)
    line.use()
    return line
  }

  function lineNow(): Line {
    if (toTransport && isInUse(transport, settings())) return toTransport
    const configured = smtpSettings(settings())
    if (configured) return toServer(configured)
    throw new AccountFlowsError('ERR_MAIL_FAILED', 'SMTP is not configured')
  }

  return {
    canSend: () => smtpSettings(settings()) !== undefined || isInUse(transport, settings()),

    async withPlace(stop, work) {
      const line = lineNow()
      return line.withPlace(stop, async (place) => (line === lineNow() ? work(place) : undefined))
    },

    close() {
      for (const line of all.values()) line.close()
    },
  }
}

function transportPeer(transport: MailTransport, settings: () => Settings): Peer {
  return {
    connections: createConnectionGate(),
    open: async (signal) => ({
      send: (mail) => handOver(transport, mail, settings(), signal),
      end: async () => {},
    }),
    close() {},
    use() {},
  }
}

/** So many mails are made ready at once while others leave. */
const READY_AT_ONCE = 30
/** So many of them at a time: their tokens are stored by one command. */
const WAVE = 10
/** Mails leave, if one did so long ago at most; less than a request waits before it is taken. */
const FLOWING_MS = 40
/** A mail that waited longer for its place is given back: another process may have one. */
const IN_LINE_MS = 20_000
/** No answer of the mail server takes longer than this. */
const ATTEMPT_MS = 30_000

/** What a place is opened to: an SMTP server, or the transport of the host. */
export interface Peer {
  /** How many are open. Whoever is being closed still counts. */
  connections: Gate
  open(signal: AbortSignal): Promise<OpenConnection>
  /** Idle ones at once, busy ones when their mail is through, until it is in use again. */
  close(): void
  use(): void
}

export interface OpenConnection extends MailConnection {
  /** Resolves once another one may be opened in its place. It never rejects. */
  end(): Promise<void>
}

export const createConnectionGate = () => createGate(() => ({ most: MOST_CONNECTIONS, wave: 1 }))

export type Line = ReturnType<typeof createLine>

/** The one line of all mails to a peer. */
export function createLine(clock: Clock, { connections, open, close, use }: Peer) {
  const places = createGate(() =>
    isFlowing() ? { most: READY_AT_ONCE, wave: WAVE } : { most: MOST_CONNECTIONS, wave: 1 },
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
    /** As `MailSender.withPlace`. */
    async withPlace<T>(
      stop: AbortSignal,
      work: (place: MailPlace) => Promise<T>,
    ): Promise<T | undefined> {
      const since = now()
      if (!(await places.enter(stop))) return undefined
      const { signal, cancel } = timeout(clock, ATTEMPT_MS, stop)
      let connection: OpenConnection | undefined
      const open = async () => (connection ??= await openOne(signal))
      try {
        // Every attempt ends, so nobody is in line for much longer.
        if (now() - since > IN_LINE_MS) return undefined
        return await work({ isFlowing: isFlowing(), open })
      } catch (error) {
        sentAt = -Infinity
        throw error
      } finally {
        // Before the signal aborts: a good connection stays.
        void connection?.end()
        cancel()
        places.leave()
      }
    },

    isEmpty: () => places.isEmpty() && connections.isEmpty(),
    close,
    use,
  }
}

/** So many may be inside. Those in line come in once so many places are free, several at a time. */
interface Room {
  most: number
  wave: number
}

export type Gate = ReturnType<typeof createGate>

/**
 * Lets in so many at once; the others wait in line.
 *
 * @param room - may change from one moment to the next.
 */
function createGate(room: () => Room) {
  const line = new Set<() => void>()
  let inside = 0

  return {
    /** `false`: the signal aborted before there was room. */
    async enter(signal: AbortSignal): Promise<boolean> {
      if (signal.aborted) return false
      if (line.size === 0 && inside < room().most) {
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

    free: () => Math.max(0, room().most - inside),
    isEmpty: () => inside === 0,
  }
}
