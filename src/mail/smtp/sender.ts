/** Hands mails over, to an SMTP server or to the transport of the host. It knows nothing of jobs and accounts. */
import { later, type Clock } from '../../clock.ts'
import { HANDING_OVER, type MailSender, type OutgoingMail } from '../sending.ts'
import type { MailTransport } from '../../contract/index.ts'
import { AccountFlowsError } from '../../errors.ts'
import { isMailAddress } from '../../settings/addresses.ts'
import { settingsTable, type Settings } from '../../settings/table.ts'
import { createAccessTokens, type AccessTokens, type RefreshTokens } from './access-tokens.ts'
import { answersTheMail, errorOf, receiptOf } from './answers.ts'
import { composeMail, newMessageId, nodemailer } from './compose.ts'
import { logsInByToken, smtpConnection, smtpSettings, type SmtpParts } from './connection.ts'
import { createPool, type Peer, type Pool, type Semaphore } from './pool.ts'
import { handOver, isInUse } from './transport.ts'

// A new refresh token needs no new access token. Otherwise each of many processes would make all others renew theirs.
const KEYS = Object.keys(settingsTable).filter((key) =>
  /^(?:smtp(?!OauthRefresh)|mailReplyTo)/.test(key),
)
// One mailbox at one mail server has one access token, so that no refresh token is used twice at once.
const PURPOSE = KEYS.filter((key) => !/From|Reply|Tls|Password/.test(key))
/** Servers accept only a limited number of mails over one connection. */
const MAX_MAILS = 100
const IDLE_MS = 15_000
/** A connection that answered this recently is not checked again. */
const FRESH_MS = 1_000
const RESET_MS = 5_000

export function createMailSender(
  settings: () => Settings,
  clock: Clock,
  refreshTokens: RefreshTokens,
  transport?: MailTransport,
): MailSender {
  if (!transport) nodemailer()
  const pools = new Map<string, Pool>()
  let keyInUse: string | undefined
  let tokens: (AccessTokens & { purpose: string }) | undefined
  const toTransport =
    transport &&
    createPool(clock, () => ({
      open: async (signal) => ({
        send: (mail) => handOver(transport, mail, settings(), signal),
        end: async () => {},
      }),
      close() {},
    }))

  // Each set of SMTP settings, credentials included, has its own pool; the connections of the others are closed. A pool stays until it is
  // empty. So settings that come back find its connections, and do not open five more.
  function toServer(configured: SmtpParts['settings']): Pool {
    // The first refresh token makes a login possible.
    const key = `${logsInByToken(configured)} ${JSON.stringify(configured, KEYS)}`
    keyInUse = key
    for (const [other, pool] of pools) {
      if (other === key) continue
      pool.close()
      if (pool.isEmpty()) pools.delete(other)
    }
    const pool = pools.get(key) ?? newPool(configured, () => key === keyInUse)
    pools.set(key, pool)
    return pool
  }

  function newPool(configured: SmtpParts['settings'], isKept: () => boolean): Pool {
    const purpose = JSON.stringify(configured, PURPOSE)
    if (tokens?.purpose !== purpose)
      tokens = { purpose, ...createAccessTokens(clock, refreshTokens, configured) }
    const smtp = { settings: configured, clock, tokens }
    return createPool(clock, (connections) => createMailServer(smtp, connections, isKept))
  }

  function poolInUse(): Pool {
    if (toTransport && isInUse(transport, settings())) return toTransport
    const configured = smtpSettings(settings())
    if (configured) return toServer(configured)
    throw new AccountFlowsError('ERR_MAIL_FAILED', 'SMTP is not configured')
  }

  return {
    canSend: () => smtpSettings(settings()) !== undefined || isInUse(transport, settings()),

    async withSlot(stop, work) {
      const pool = poolInUse()
      return pool.withSlot(stop, async (slot) => (pool === poolInUse() ? work(slot) : undefined))
    },

    close() {
      keyInUse = undefined
      for (const pool of pools.values()) pool.close()
    },
  }
}

/** @param isKept - whether connections stay for other mails. */
function createMailServer(smtp: SmtpParts, connections: Semaphore, isKept: () => boolean): Peer {
  const { settings, clock } = smtp
  /** Connections that are not needed now, newest last, each with what cancels its end. */
  const idle = new Map<KeptConnection, () => void>()

  function takeIdle(kept = [...idle.keys()].at(-1)): KeptConnection | undefined {
    if (kept) idle.get(kept)?.()
    if (kept) idle.delete(kept)
    return kept
  }

  /** One that is closing takes the place of an open one. */
  function closeIdle(kept: KeptConnection) {
    takeIdle(kept)
    connections.add()
    void kept.quit().then(connections.release)
  }

  return {
    async open(signal) {
      if (!isMailAddress(settings.smtpFrom)) {
        throw new AccountFlowsError('ERR_MAIL_FAILED', 'The sender is not one plain address')
      }
      let kept = takeIdle()
      const destroy = () => kept?.socket.destroy()
      signal.addEventListener('abort', destroy)
      try {
        if (kept && !(await kept.isAnswering())) kept = undefined
        signal.throwIfAborted()
        if (!kept) {
          kept = keptConnection(smtp)
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
        send: (mail) => lent.sendMail(mail, signal),
        async end() {
          signal.removeEventListener('abort', destroy)
          if (!isKept() || !lent.takesMore()) return lent.quit()
          const cancel = later(clock, IDLE_MS, () => closeIdle(lent))
          idle.set(lent, cancel)
        },
      }
    },

    close() {
      // Mails that wait for a connection, and are let in already, take the others.
      for (const kept of idle.keys()) if (connections.hasRoom()) closeIdle(kept)
    },
  }
}

type KeptConnection = ReturnType<typeof keptConnection>

function keptConnection(smtp: SmtpParts) {
  const { settings, clock } = smtp
  const connection = smtpConnection(smtp)
  const { socket, closed, isOpen } = connection
  const now = () => clock.now().getTime()
  let mails = 0
  let answeredAt = now()

  return {
    ...connection,

    takesMore: () => mails < MAX_MAILS && isOpen(),

    async isAnswering(): Promise<boolean> {
      if (now() - answeredAt < FRESH_MS && isOpen()) return true
      const cancel = later(clock, RESET_MS, () => socket.destroy())
      try {
        // The server also forgets a refused mail.
        await connection.say('RSET')
        return true
      } catch {
        socket.destroy()
        await closed
        return false
      } finally {
        cancel()
      }
    },

    async sendMail(mail: OutgoingMail, signal: AbortSignal) {
      const messageId = newMessageId(settings.smtpFrom)
      const message = composeMail(mail, settings, messageId)
      mails += 1
      answeredAt = -Infinity
      let doing = 'naming sender and recipient'
      try {
        const reply = await connection.send(mail.to, message, () => (doing = HANDING_OVER))
        answeredAt = now()
        return receiptOf(messageId, `${message.toString()}${mail.text}`, reply)
      } catch (cause) {
        if (!answersTheMail(cause)) socket.destroy()
        throw errorOf(cause, signal, doing, settings)
      }
    },
  }
}
