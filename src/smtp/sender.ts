import { later, type Clock } from '../clock.ts'
import { AccountFlowsError } from '../errors.ts'
import type { MailConnection, MailSender, MailTransport } from '../ports/index.ts'
import { MOST_CONNECTIONS } from '../ports/mails.ts'
import { isMailAddress } from '../settings/mail-address.ts'
import type { Settings } from '../settings/table.ts'
import {
  createAccessTokens,
  tokenKey,
  type AccessTokens,
  type RefreshTokens,
} from './access-tokens.ts'
import { errorOf } from './error.ts'
import { createLine } from './line.ts'
import { nodemailer } from './nodemailer.ts'
import { smtpSettings, type SmtpSettings } from './settings.ts'
import { lend, newSlot, warm, type Slot } from './slot.ts'
import { createConnectTransport, isInUse } from './transport.ts'

/** Servers take only so many over one connection. */
const MAX_MAILS = 100
const IDLE_MS = 15_000

export function createMailSender(
  settings: () => Settings,
  clock: Clock,
  refreshTokens: RefreshTokens,
  transport?: MailTransport,
): MailSender {
  if (!transport) nodemailer()
  const all = new Map<string, SmtpSlots>()
  const tokens = createAccessTokens(clock, refreshTokens)
  const connectTransport = transport && createConnectTransport(transport)

  // Each set of SMTP settings, the credentials included, has its own; the old ones are closed when they change. They are kept
  // until they are empty, so that settings that come back find them, and not five more.
  function slotsOf(configured: SmtpSettings): SmtpSlots {
    const { oauth, ...others } = configured
    const key = JSON.stringify([others, oauth && tokenKey(oauth)])
    for (const [other, slots] of all) {
      if (other === key) continue
      slots.close()
      if (slots.isEmpty()) all.delete(other)
    }
    const slots = all.get(key) ?? smtpSlots(configured, clock, tokens)
    all.set(key, slots)
    return slots
  }

  return {
    canSend: () => smtpSettings(settings()) !== undefined || isInUse(transport, settings()),

    async connect(settings, signal) {
      if (connectTransport && isInUse(transport, settings))
        return connectTransport(settings, signal)
      const configured = smtpSettings(settings)
      if (configured) return slotsOf(configured).connect(signal)
      throw new AccountFlowsError('ERR_MAIL_FAILED', 'SMTP is not configured')
    },

    close() {
      for (const slots of all.values()) slots.close()
    },
  }
}

/** Five slots for connections to one mail server; one that is being closed holds its slot until it is. */
export type SmtpSlots = ReturnType<typeof smtpSlots>

export function smtpSlots(settings: SmtpSettings, clock: Clock, tokens: AccessTokens) {
  const slots = Array.from({ length: MOST_CONNECTIONS }, () => newSlot(clock))
  const line = createLine()
  let isClosed = false

  function giveBack(slot: Slot, isGood: boolean): void {
    const { connection, mails } = slot
    if (!isGood) connection?.socket.destroy()
    if (!isGood || isClosed || mails >= MAX_MAILS || !connection?.isOpen()) return void empty(slot)
    slot.freeSince = clock.now()
    slot.keep = later(clock, IDLE_MS, () => void empty(slot))
    free(slot)
  }

  async function empty(slot: Slot): Promise<void> {
    slot.isTaken = true
    slot.keep()
    await slot.connection?.quit()
    free(slot)
  }

  function free(slot: Slot): void {
    slot.isTaken = false
    line.call()
  }

  return {
    /** Takes an idle connection that still answers, opens one, or waits in line, until the signal aborts. */
    async connect(signal: AbortSignal): Promise<MailConnection> {
      if (!isMailAddress(settings.from)) {
        throw new AccountFlowsError('ERR_MAIL_FAILED', 'The sender is not one plain address')
      }
      isClosed = false
      const slot = await line
        .wait(() => take(slots), signal)
        .catch((cause: unknown) => {
          throw errorOf(cause, signal, 'waiting for a free connection')
        })
      const destroy = () => slot.connection?.socket.destroy()
      const release = (isGood: boolean) => {
        signal.removeEventListener('abort', destroy)
        giveBack(slot, isGood)
      }
      signal.addEventListener('abort', destroy)
      try {
        await warm(slot, settings, clock, tokens, signal)
        return lend(slot, settings, signal, release)
      } catch (cause) {
        release(false)
        throw errorOf(cause, signal, 'connecting', settings)
      }
    },

    /** Idle connections at once, busy ones when their mail is through. `connect` opens them again. */
    close(): void {
      isClosed = true
      for (const slot of slots) if (!slot.isTaken) void empty(slot)
    },

    /** No connection, and none under way. */
    isEmpty: () => slots.every(({ isTaken, connection }) => !isTaken && !connection),
  }
}

/** A free slot, if possible one with a connection. `undefined`: none is free. */
function take(slots: Slot[]): Slot | undefined {
  const free = slots.filter(({ isTaken }) => !isTaken)
  const slot = free.find(({ connection }) => connection) ?? free[0]
  if (!slot) return undefined
  slot.isTaken = true
  slot.keep()
  return slot
}
