import type { Clock } from '../clock.ts'
import { AccountFlowsError } from '../errors.ts'
import type { MailConnection } from '../ports/index.ts'
import { isMailAddress } from '../settings/mail-address.ts'
import type { AccessTokens } from './access-tokens.ts'
import { composeMail, newMessageId } from './compose.ts'
import { smtpConnection, type SmtpConnection } from './connection.ts'
import { answersTheMail, errorOf } from './error.ts'
import { receiptOf } from './receipt.ts'
import type { SmtpSettings } from './settings.ts'

/** Whoever answered so short a time ago is not asked whether it still does. */
const FRESH_MS = 1_000

/** Room for one connection, which stays for the next mail. */
export interface Slot {
  isTaken: boolean
  /** `undefined`: there is none, or it ended. */
  connection?: SmtpConnection | undefined
  /** Over this connection. */
  mails: number
  /** It is asked for an answer before the next mail, however short ago it gave one. */
  isDoubtful: boolean
  freeSince: Date
  /** It is not closed for idleness any more. */
  keep(): void
}

export function newSlot(clock: Clock): Slot {
  return { isTaken: false, mails: 0, isDoubtful: false, freeSince: clock.now(), keep() {} }
}

/** Sees to it that the slot has a connection that answers, logged in. */
export async function warm(
  slot: Slot,
  settings: SmtpSettings,
  clock: Clock,
  tokens: AccessTokens,
  signal: AbortSignal,
): Promise<void> {
  const idleMs = clock.now().getTime() - slot.freeSince.getTime()
  const kept = slot.connection
  const isFresh = !slot.isDoubtful && idleMs < FRESH_MS && kept?.isOpen()
  if (kept && !isFresh && !(await kept.reset())) {
    kept.socket.destroy()
    await kept.closed
  }
  signal.throwIfAborted()
  slot.isDoubtful = false
  if (slot.connection) return
  const connection = smtpConnection(settings, clock, tokens)
  slot.connection = connection
  slot.mails = 0
  connection.socket.once('close', () => {
    slot.connection = undefined
    slot.keep()
  })
  await connection.reach()
  await connection.greet()
  await connection.login()
}

/** The connection of a slot, for the mails of one caller. */
export function lend(
  slot: Slot,
  settings: SmtpSettings,
  signal: AbortSignal,
  giveBack: (isGood: boolean) => void,
): MailConnection {
  const { connection } = slot
  let isGood = true
  let isReleased = false

  return {
    async send(mail) {
      if (!isMailAddress(mail.to)) {
        throw new AccountFlowsError('ERR_MAIL_ADDRESS', 'The recipient is not one plain address')
      }
      if (isReleased || !connection) {
        throw new AccountFlowsError('ERR_MAIL_FAILED', 'The connection was given back')
      }
      isGood = false
      slot.mails += 1
      try {
        const messageId = newMessageId(settings.from)
        const message = composeMail(mail, settings, messageId)
        const reply = await connection.send(mail.to, message)
        isGood = true
        const isInMail = (id: string) => message.includes(id) || mail.text.includes(id)
        return receiptOf(messageId, reply, isInMail)
      } catch (cause) {
        isGood = answersTheMail(cause)
        slot.isDoubtful = true
        throw errorOf(cause, signal, 'handing the mail over', settings)
      }
    },

    release() {
      if (isReleased) return
      isReleased = true
      giveBack(isGood)
    },
  }
}
