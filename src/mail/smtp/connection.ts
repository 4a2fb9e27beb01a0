import { connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import type SMTPConnection from 'nodemailer/lib/smtp-connection'
import type {
  SMTPConnectionCustomAuthHandler,
  SMTPConnectionOptions,
  SMTPConnectionSendInfo,
} from 'nodemailer/lib/smtp-connection'
import { later, type Clock } from '../../clock.ts'
import { isLoopbackHost } from '../../settings/addresses.ts'
import { missingForLogin } from '../../settings/rules.ts'
import type { Settings } from '../../settings/table.ts'
import type { AccessTokens } from './access-tokens.ts'
import { domainOf, nodemailer } from './compose.ts'

/** The time to look the host up, and to connect. */
const CONNECT_MS = 10_000
/** If a host has several addresses, each has this time before the next one is tried. */
const ADDRESS_MS = 2_000
const GREETING_MS = 10_000
/** The longest time without a byte from the server. */
const SOCKET_MS = 20_000
const QUIT_MS = 2_000
const MAX_REPLY_BYTES = 65_536

/**
 * A connection to a mail server. Use it in this order: `reach`, `greet`, `login`, `send`; one at a time. Each fails with the error of the
 * library or of the system. Destroying the socket ends it at any stage.
 */
export type SmtpConnection = ReturnType<typeof smtpConnection>

export function smtpConnection(
  { settings, clock, tokens }: SmtpParts,
  options?: SMTPConnectionOptions,
) {
  const { smtpHost: host, smtpPort: port, smtpFrom: from } = settings
  const autoSelectFamilyAttemptTimeout = ADDRESS_MS
  const socket = connect({ host, port, autoSelectFamily: true, autoSelectFamilyAttemptTimeout })
  const { SMTPConnection } = nodemailer()
  const smtp = new SMTPConnection({
    connection: socket,
    host,
    // Otherwise the library gives the server the name of this machine.
    name: domainOf(from),
    ...tlsPolicy(settings),
    connectionTimeout: CONNECT_MS,
    greetingTimeout: GREETING_MS,
    socketTimeout: SOCKET_MS,
    socketCloseTimeout: 0,
    maxResponseSize: MAX_REPLY_BYTES,
    customAuth: { SAY: sayCommand },
    ...options,
  })
  const { underWay, isOpen, closed } = lifeOf(smtp, socket)
  const say = (command: string) => underWay((done) => smtp.login({ method: 'SAY', command }, done))

  return {
    smtp,
    socket,
    isOpen,
    closed,
    /** Says one command. Fails if the server refuses it. */
    say,

    async reach(): Promise<void> {
      const late = Object.assign(new Error('Not connected in time'), { code: 'ETIMEDOUT' })
      const cancel = later(clock, CONNECT_MS, () => socket.destroy(late))
      await underWay((done) => socket.once('connect', () => done())).finally(cancel)
    },

    /** Waits for the greeting, says hello, and goes on over TLS as `smtp_tls` requires. */
    greet: () => underWay((done) => smtp.connect(done)),

    /** Logs in. `false`: the settings contain no login. */
    async login(): Promise<boolean> {
      const { smtpUsername: user, smtpPassword: pass } = settings
      if (user === undefined || missingForLogin(settings).length > 0) return false
      if (!smtp.allowsAuth) throw Object.assign(new Error('No AUTH'), { code: 'ENOAUTH' })
      if (logsInByToken(settings)) await logInByToken(user, tokens, say)
      else await underWay((done) => smtp.login({ user, pass }, done))
      return true
    },

    /** @param onContent - called once the server has taken sender and recipient, just before it gets the content. */
    send: (to: string, message: Buffer, onContent = () => {}) =>
      underWay<SMTPConnectionSendInfo>((done) =>
        smtp.send({ from, to }, contentOf(message, onContent), done),
      ),

    /** Says goodbye if the connection is still open. The socket is closed within 2 seconds. */
    async quit(): Promise<void> {
      if (isOpen() && smtp.stage === 'connected') smtp.quit()
      else socket.destroy()
      const cancel = later(clock, QUIT_MS, () => socket.destroy())
      await closed.finally(cancel)
    },
  }
}

function contentOf(message: Buffer, onRead: () => void): Readable {
  return new Readable({
    read() {
      onRead()
      this.push(message)
      this.push(null)
    },
  })
}

/** Fails the call under way when the connection ends, because the library does not. */
function lifeOf(smtp: SMTPConnection, socket: Socket) {
  let failure: Error | undefined
  let failUnderWay = (_failure: Error) => {}
  const end = (error?: Error | null) => {
    failure ??= error ?? Object.assign(new Error('Connection closed'), { code: 'ECONNECTION' })
    failUnderWay(failure)
    socket.destroy()
  }
  smtp.on('error', end)
  smtp.on('end', () => end())
  socket.on('error', () => {})
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => {
      end(socket.errored)
      smtp.close()
      resolve()
    })
  })

  return {
    closed,
    // A destroyed socket reports this only some turns later.
    isOpen: () => !failure && socket.writable,
    underWay: <T = unknown>(start: (done: (error?: Error | null, result?: T) => void) => void) =>
      new Promise<T | undefined>((resolve, reject) => {
        if (failure) return reject(failure)
        failUnderWay = reject
        start((error, result) => (error ? reject(error) : resolve(result)))
      }),
  }
}

/** The library itself renews a token only for some servers, and then hides the first answer. */
async function logInByToken(user: string, tokens: AccessTokens, say: SmtpConnection['say']) {
  const show = (token: string) => {
    const sasl = `user=${user}\u0001auth=Bearer ${token}\u0001\u0001`
    return say(`AUTH XOAUTH2 ${Buffer.from(sasl).toString('base64')}`).catch((error: unknown) => {
      throw error instanceof Error ? Object.assign(error, { command: 'AUTH XOAUTH2' }) : error
    })
  }
  const held = tokens.held()
  const token = await tokens.get()
  await show(token).catch(async (error: unknown) => {
    // A held token may be revoked before its end. Then a new one is tried, once.
    if (token !== held || Reflect.get(Object(error), 'responseCode') !== 535) throw error
    await show(await tokens.get(token))
  })
}

/** One command alone: the library itself names sender and recipient only to send a mail. */
const sayCommand: SMTPConnectionCustomAuthHandler = ({ auth, sendCommand, resolve, reject }) => {
  sendCommand(String(auth['command']), (_error, { status, response }) => {
    if (status !== 334) return response.startsWith('2') ? resolve() : reject('Refused')
    // A 334 is a challenge that describes why a token is refused. The refusal comes after an empty line.
    sendCommand('', () => reject('Refused'))
  })
}

/** What a connection needs. Only a login by token asks for a token. */
export interface SmtpParts {
  settings: SmtpSettings
  clock: Clock
  tokens: AccessTokens
}

/** Settings with which a mail can leave by SMTP. */
export type SmtpSettings = Settings & { smtpHost: string; smtpPort: number; smtpFrom: string }

/** `undefined`: SMTP is not configured, or must not be used. */
export function smtpSettings(settings: Settings): SmtpSettings | undefined {
  const { smtpFault, smtpHost, smtpPort, smtpFrom } = settings
  const isSet = smtpHost !== undefined && smtpPort !== undefined && smtpFrom !== undefined
  if (!isSet || smtpFault !== undefined) return undefined
  return { ...settings, smtpHost, smtpPort, smtpFrom }
}

/** Whether the login is by access token. If a part of it is missing, there is no login. */
export function logsInByToken(settings: Settings): boolean {
  return settings.smtpAuth === 'xoauth2' && missingForLogin(settings).length === 0
}

/**
 * The setting `smtp_tls`. `auto` is implicit TLS on port 465, and STARTTLS that must succeed on any other port. Only a loopback host may go
 * without TLS, or show an untrusted certificate.
 */
export function tlsPolicy(settings: Pick<SmtpSettings, 'smtpHost' | 'smtpPort' | 'smtpTls'>) {
  const { smtpHost: host, smtpPort: port, smtpTls: tls } = settings
  const isLenient = tls === 'auto' && isLoopbackHost(host)
  const secure = tls === 'implicit' || (tls === 'auto' && port === 465)
  return {
    secure,
    requireTLS: !secure && (tls === 'starttls' || (tls === 'auto' && !isLenient)),
    ignoreTLS: tls === 'none',
    tls: { minVersion: 'TLSv1.2' as const, rejectUnauthorized: !isLenient },
  }
}
