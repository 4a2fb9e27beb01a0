import type { Clock } from '../../clock.ts'
import { AccountFlowsError } from '../../errors.ts'
import type { OutgoingMail, SentMail } from '../../contract/index.ts'
import { isMailAddress } from '../../settings/addresses.ts'
import type { AccessTokens } from './access-tokens.ts'
import { composeMail, newMessageId } from './compose.ts'
import { smtpConnection, type SmtpConnection } from './connection.ts'
import { answersTheMail, errorOf } from './error.ts'
import { createConnectionGate, type Gate, type Peer } from './line.ts'
import { receiptOf } from './receipt.ts'
import type { SmtpSettings } from './settings.ts'

/** Servers take only so many over one connection. */
const MAX_MAILS = 100
const IDLE_MS = 15_000
/** Whoever answered so short a time ago is not asked whether it still does. */
const FRESH_MS = 1_000

/** A connection that stays for the next mail. */
interface Kept extends SmtpConnection {
  mails: number
  freeSince: number
  /** It is asked for an answer before the next mail, however short ago it gave one. */
  isDoubtful: boolean
}

/** The connections to one mail server. */
export function createMailServer(settings: SmtpSettings, clock: Clock, tokens: AccessTokens): Peer {
  const connections = createConnectionGate()
  const idle = createIdle(clock, connections)
  let isClosed = false

  async function isAnswering(kept: Kept): Promise<boolean> {
    const idleMs = clock.now().getTime() - kept.freeSince
    const isFresh = !kept.isDoubtful && idleMs < FRESH_MS && kept.isOpen()
    if (isFresh || (await kept.reset())) return true
    kept.socket.destroy()
    await kept.closed
    return false
  }

  async function giveBack(kept: Kept): Promise<void> {
    if (isClosed || kept.mails >= MAX_MAILS || !kept.isOpen()) await kept.quit()
    else idle.add(kept)
  }

  return {
    connections,

    /** Takes an idle one that still answers, or opens one. */
    async open(signal) {
      if (!isMailAddress(settings.from)) {
        throw new AccountFlowsError('ERR_MAIL_FAILED', 'The sender is not one plain address')
      }
      let kept = idle.take()
      const destroy = () => kept?.socket.destroy()
      signal.addEventListener('abort', destroy)
      try {
        if (kept && !(await isAnswering(kept))) kept = undefined
        signal.throwIfAborted()
        if (!kept) {
          kept = newConnection(settings, clock, tokens)
          await kept.reach()
          await kept.greet()
          await kept.login()
        }
      } catch (cause) {
        destroy()
        await kept?.closed
        throw errorOf(cause, signal, 'connecting', settings)
      }
      const lent = kept
      return {
        send: (mail) => handOver(lent, mail, settings, signal),
        end() {
          signal.removeEventListener('abort', destroy)
          return giveBack(lent)
        },
      }
    },

    use() {
      isClosed = false
    },

    close() {
      isClosed = true
      idle.closeAll()
    },
  }
}

function newConnection(settings: SmtpSettings, clock: Clock, tokens: AccessTokens): Kept {
  return { ...smtpConnection(settings, clock, tokens), mails: 0, freeSince: 0, isDoubtful: false }
}

/** Connections that nobody needs now. One that is being closed takes the place of an open one. */
function createIdle(clock: Clock, connections: Gate) {
  /** In the order in which they got free. */
  const idle: Kept[] = []
  let isWatching = false

  // One wait for all of them.
  async function watch(): Promise<void> {
    if (isWatching) return
    isWatching = true
    for (let oldest = idle[0]; oldest; oldest = idle[0]) {
      const leftMs = oldest.freeSince + IDLE_MS - clock.now().getTime()
      if (leftMs > 0) await clock.sleep(leftMs, { ref: false })
      else close(1)
    }
    isWatching = false
  }

  function close(oldest: number) {
    for (const kept of idle.splice(0, oldest)) {
      connections.take()
      void kept.quit().then(connections.leave)
    }
  }

  return {
    add(kept: Kept) {
      kept.freeSince = clock.now().getTime()
      idle.push(kept)
      void watch()
    },
    take: () => idle.pop(),
    // Who has entered takes one of the others.
    closeAll: () => close(Math.min(idle.length, connections.free())),
  }
}

async function handOver(
  kept: Kept,
  mail: OutgoingMail,
  settings: SmtpSettings,
  signal: AbortSignal,
): Promise<SentMail> {
  const messageId = newMessageId(settings.from)
  const message = composeMail(mail, settings, messageId)
  kept.mails += 1
  try {
    const reply = await kept.send(mail.to, message)
    kept.isDoubtful = false
    const isInMail = (id: string) => message.includes(id) || mail.text.includes(id)
    return receiptOf(messageId, reply, isInMail)
  } catch (cause) {
    kept.isDoubtful = true
    if (!answersTheMail(cause)) kept.socket.destroy()
    throw errorOf(cause, signal, 'handing the mail over', settings)
  }
}
