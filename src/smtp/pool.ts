import { connect, type Socket } from 'node:net'
import { later, type Clock } from '../clock.ts'
import { AccountFlowsError } from '../errors.ts'
import { isMailAddress } from '../settings/mail-address.ts'
import type { MailConnection } from '../ports/index.ts'
import { composeMail } from './compose.ts'
import { answersTheMail, smtpError } from './error.ts'
import { openSmtpSession, type SmtpSession } from './session.ts'
import type { SmtpSettings } from './settings.ts'

const MAX_SOCKETS = 5
const IDLE_MS = 15_000
/** Of several addresses of a host, each is given so long before the next one is tried. */
const ADDRESS_MS = 2_000

/** At most 5 sockets to one mail server; one that is being closed counts until it is. */
export interface SmtpPool {
  /** Takes an idle connection that still answers, opens one, or waits in line, until the signal aborts. */
  connect(signal: AbortSignal): Promise<MailConnection>
  /** Idle connections at once, busy ones when their mail is through. `connect` opens the pool again. */
  close(): void
  /** No socket, and nobody in line. */
  isEmpty(): boolean
}

/** A connection to check, or a socket that is connecting. */
type Slot = SmtpSession | Socket

export function smtpPool(
  settings: SmtpSettings,
  clock: Clock,
  { idleMs = IDLE_MS } = {},
): SmtpPool {
  const { host, port, from } = settings
  const sockets = new Set<Socket>()
  const idle = new Map<SmtpSession, () => void>()
  const line = new Set<(slot: Slot) => void>()
  let isClosed = false

  function freeSlot(): Slot | undefined {
    const newest = [...idle.keys()].at(-1)
    if (!newest) return sockets.size < MAX_SOCKETS ? openSocket() : undefined
    forget(newest)
    return newest
  }

  function openSocket(): Socket {
    const autoSelectFamilyAttemptTimeout = ADDRESS_MS
    const socket = connect({ host, port, autoSelectFamily: true, autoSelectFamilyAttemptTimeout })
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => {
      sockets.delete(socket)
      serveLine()
    })
    return socket
  }

  function serveLine(): void {
    for (const serve of line) {
      const slot = freeSlot()
      if (!slot) return
      line.delete(serve)
      serve(slot)
    }
  }

  function waitInLine(signal: AbortSignal): Promise<Slot> {
    return new Promise((resolve, reject) => {
      const serve = (slot: Slot) => {
        signal.removeEventListener('abort', leave)
        resolve(slot)
      }
      const leave = () => {
        line.delete(serve)
        reject(abortError(signal, 'waiting for a free connection'))
      }
      signal.addEventListener('abort', leave)
      line.add(serve)
    })
  }

  /** `undefined`: an idle connection had died, and another slot is to be taken. */
  async function ready(slot: Slot): Promise<SmtpSession | undefined> {
    if ('reset' in slot) {
      if (await slot.reset()) return slot
      slot.socket.destroy()
      return undefined
    }
    const session = await openSmtpSession(slot, settings, clock)
    slot.once('close', () => forget(session))
    return session
  }

  function keep(session: SmtpSession): void {
    if (isClosed || !session.mayGoOn()) return session.quit()
    const sayGoodbye = () => {
      forget(session)
      session.quit()
    }
    idle.set(session, later(clock, idleMs, sayGoodbye))
    serveLine()
  }

  function forget(session: SmtpSession): void {
    idle.get(session)?.()
    idle.delete(session)
  }

  function lend(session: SmtpSession, signal: AbortSignal, letGo: () => void): MailConnection {
    let isGood = true
    let isReleased = false

    return {
      async send(mail) {
        if (!isMailAddress(mail.to)) {
          throw new AccountFlowsError('ERR_MAIL_ADDRESS', 'The recipient is not one plain address')
        }
        if (isReleased)
          throw new AccountFlowsError('ERR_MAIL_FAILED', 'The connection was given back')
        isGood = false
        try {
          await session.send(from, mail.to, await composeMail(mail, settings))
          isGood = true
        } catch (cause) {
          isGood = answersTheMail(cause)
          throw errorOf(cause, signal, 'handing the mail over')
        }
      },

      release() {
        if (isReleased) return
        isReleased = true
        letGo()
        if (isGood) keep(session)
        else session.socket.destroy()
      },
    }
  }

  return {
    async connect(signal) {
      if (!isMailAddress(from)) {
        throw new AccountFlowsError('ERR_MAIL_FAILED', 'The sender is not one plain address')
      }
      isClosed = false
      for (;;) {
        if (signal.aborted) throw abortError(signal, 'waiting for a free connection')
        const slot = (line.size === 0 && freeSlot()) || (await waitInLine(signal))
        const socket = 'reset' in slot ? slot.socket : slot
        const destroy = () => socket.destroy()
        const letGo = () => signal.removeEventListener('abort', destroy)
        signal.addEventListener('abort', destroy)
        try {
          if (signal.aborted) destroy()
          const session = await ready(slot)
          if (session) return lend(session, signal, letGo)
        } catch (cause) {
          letGo()
          throw errorOf(cause, signal, 'connecting')
        }
        letGo()
      }
    },

    close() {
      isClosed = true
      for (const session of idle.keys()) {
        forget(session)
        session.quit()
      }
    },

    isEmpty: () => sockets.size === 0 && line.size === 0,
  }
}

function errorOf(cause: unknown, signal: AbortSignal, doing: string): AccountFlowsError {
  return signal.aborted ? abortError(signal, doing) : smtpError(cause, doing)
}

function abortError({ reason }: AbortSignal, doing: string): AccountFlowsError {
  const isLate = reason instanceof Error && reason.name === 'TimeoutError'
  return new AccountFlowsError(
    'ERR_MAIL_FAILED',
    `The mail was not sent (${isLate ? 'out of time' : 'stopped'} while ${doing})`,
  )
}
