import { later, type Clock } from '../clock.ts'
import { AccountFlowsError } from '../errors.ts'
import type { MailConnection, Mailer, MailSender } from '../ports/index.ts'
import { isMailAddress } from '../settings/mail-address.ts'
import type { Settings } from '../settings/table.ts'
import { abortError, errorOf } from './error.ts'
import { smtpSettings, type SmtpSettings } from './settings.ts'
import { lend, warm, type Slot } from './slot.ts'

const SLOTS = 5
/** Servers take only so many over one connection. */
const MAX_MAILS = 100
const IDLE_MS = 15_000
const WAITING = 'waiting for a free connection'

export function createMailSender(
  settings: () => Settings,
  clock: Clock,
  development?: Mailer,
): MailSender {
  const all = new Map<string, SmtpSlots>()

  // Each set of SMTP settings, the credentials included, has its own; the old ones are closed when they change. They are kept
  // until they are empty, so that settings that come back find them, and not five more.
  function slotsOf(configured: SmtpSettings): SmtpSlots {
    const key = JSON.stringify(configured)
    for (const [other, slots] of all) {
      if (other === key) continue
      slots.close()
      if (slots.isEmpty()) all.delete(other)
    }
    const slots = all.get(key) ?? smtpSlots(configured, clock)
    all.set(key, slots)
    return slots
  }

  return {
    canSend: () => smtpSettings(settings()) !== undefined || development !== undefined,

    async connect(settings, signal) {
      const configured = smtpSettings(settings)
      if (configured) return slotsOf(configured).connect(signal)
      if (!development) throw new AccountFlowsError('ERR_MAIL_FAILED', 'SMTP is not configured')
      return { send: (mail) => development.send(mail), release() {} }
    },

    close() {
      for (const slots of all.values()) slots.close()
    },
  }
}

/** Five slots for connections to one mail server; one that is being closed holds its slot until it is. */
export type SmtpSlots = ReturnType<typeof smtpSlots>

export function smtpSlots(settings: SmtpSettings, clock: Clock) {
  const free = Array.from({ length: SLOTS }, (): Slot => ({
    mails: 0,
    isDoubtful: false,
    freeSince: clock.now(),
    keep() {},
  }))
  const line = new Set<(slot: Slot) => void>()
  let isClosed = false

  /** The one used last, where any has a connection. */
  function take(): Slot | undefined {
    const last = free.findLastIndex(({ connection }) => connection)
    const [slot] = free.splice(last, 1)
    slot?.keep()
    return slot
  }

  function put(slot: Slot): void {
    const [first] = line
    if (!first) return void free.push(slot)
    line.delete(first)
    first(slot)
  }

  function giveBack(slot: Slot, isGood: boolean): void {
    const { connection, mails } = slot
    if (!isGood) connection?.socket.destroy()
    if (!isGood || isClosed || mails >= MAX_MAILS || !connection?.isOpen()) return void end(slot)
    slot.freeSince = clock.now()
    slot.keep = later(clock, IDLE_MS, () => endIdle(slot))
    put(slot)
  }

  async function end(slot: Slot): Promise<void> {
    await slot.connection?.quit()
    put(slot)
  }

  function endIdle(slot: Slot): void {
    slot.keep()
    free.splice(free.indexOf(slot), 1)
    void end(slot)
  }

  return {
    /** Takes an idle connection that still answers, opens one, or waits in line, until the signal aborts. */
    async connect(signal: AbortSignal): Promise<MailConnection> {
      if (!isMailAddress(settings.from)) {
        throw new AccountFlowsError('ERR_MAIL_FAILED', 'The sender is not one plain address')
      }
      if (signal.aborted) throw abortError(signal, WAITING)
      isClosed = false
      const slot = take() ?? (await inLine(line, signal))
      const destroy = () => slot.connection?.socket.destroy()
      const release = (isGood: boolean) => {
        signal.removeEventListener('abort', destroy)
        giveBack(slot, isGood)
      }
      signal.addEventListener('abort', destroy)
      try {
        await warm(slot, settings, clock, signal)
        return lend(slot, settings, signal, release)
      } catch (cause) {
        release(false)
        throw errorOf(cause, signal, 'connecting')
      }
    },

    /** Idle connections at once, busy ones when their mail is through. `connect` opens them again. */
    close(): void {
      isClosed = true
      for (const slot of free.filter(({ connection }) => connection)) endIdle(slot)
    },

    /** No connection, and nobody in line. */
    isEmpty: () => free.length === SLOTS && free.every(({ connection }) => !connection),
  }
}

function inLine(line: Set<(slot: Slot) => void>, signal: AbortSignal): Promise<Slot> {
  return new Promise((resolve, reject) => {
    const serve = (slot: Slot) => {
      signal.removeEventListener('abort', leave)
      resolve(slot)
    }
    const leave = () => {
      line.delete(serve)
      reject(abortError(signal, WAITING))
    }
    signal.addEventListener('abort', leave)
    line.add(serve)
  })
}
