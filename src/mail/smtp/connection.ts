import { connect, type Socket } from 'node:net'
import type SMTPConnection from 'nodemailer/lib/smtp-connection'
import type {
  SMTPConnectionCustomAuthHandler,
  SMTPConnectionOptions,
  SMTPConnectionSendInfo,
} from 'nodemailer/lib/smtp-connection'
import { later, type Clock } from '../../clock.ts'
import type { AccessTokens } from './access-tokens.ts'
import { domainOf, nodemailer } from './compose.ts'
import { tlsPolicy, type SmtpSettings } from './settings.ts'

/** The time to look the host up, and to connect. */
const CONNECT_MS = 10_000
/** If a host has several addresses, each has this time before the next one is tried. */
const ADDRESS_MS = 2_000
const GREETING_MS = 10_000
/** The longest time without a byte from the server. */
const SOCKET_MS = 20_000
const RESET_MS = 5_000
const QUIT_MS = 2_000
const MAX_REPLY_BYTES = 65_536

/**
 * A connection to a mail server. Use it in this order: `reach`, `greet`, `login`, `send`; one at a time. Each fails with the error of the
 * library or of the system. Destroying the socket ends it at any stage.
 */
export type SmtpConnection = ReturnType<typeof smtpConnection>

export function smtpConnection(
  settings: SmtpSettings,
  clock: Clock,
  tokens: AccessTokens,
  options: SMTPConnectionOptions = {},
) {
  const { host, port, from } = settings
  const autoSelectFamilyAttemptTimeout = ADDRESS_MS
  const socket = connect({ host, port, autoSelectFamily: true, autoSelectFamilyAttemptTimeout })
  const { SMTPConnection } = nodemailer()
  const smtp = new SMTPConnection({
    connection: socket,
    host,
    port,
    // Otherwise the library gives the server the name of this machine.
    name: domainOf(from),
    ...tlsPolicy(settings),
    connectionTimeout: CONNECT_MS,
    greetingTimeout: GREETING_MS,
    socketTimeout: SOCKET_MS,
    socketCloseTimeout: 0,
    maxResponseSize: MAX_REPLY_BYTES,
    ...options,
    customAuth: { TOKEN: sayToken, ...options.customAuth },
  })
  const { underWay, isOpen, closed } = lifeOf(smtp, socket)

  return {
    smtp,
    socket,
    underWay,
    isOpen,
    closed,

    async reach(): Promise<void> {
      const late = Object.assign(new Error('Not connected in time'), { code: 'ETIMEDOUT' })
      const cancel = later(clock, CONNECT_MS, () => socket.destroy(late))
      await underWay((done) => socket.once('connect', () => done())).finally(cancel)
    },

    /** Waits for the greeting, says hello, and goes on over TLS as `smtp_tls` requires. */
    greet: () => underWay((done) => smtp.connect(done)),

    /** Logs in. `false`: the settings contain no login. */
    login: () => logIn(smtp, underWay, settings, tokens),

    send: (to: string, message: Buffer) =>
      underWay<SMTPConnectionSendInfo>((done) => smtp.send({ from, to }, message, done)),

    /** Whether the server still answers. The reset makes it forget a refused mail. */
    async reset(): Promise<boolean> {
      const cancel = later(clock, RESET_MS, () => socket.destroy())
      const answer = underWay((done) => smtp.reset(done)).then(() => true)
      return answer.catch(() => false).finally(cancel)
    },

    /** Says goodbye if the connection is still open. The socket is closed within 2 seconds. */
    async quit(): Promise<void> {
      if (isOpen() && smtp.stage === 'connected') smtp.quit()
      else socket.destroy()
      const cancel = later(clock, QUIT_MS, () => socket.destroy())
      await closed.finally(cancel)
    },
  }
}

/** Fails the call under way when the connection ends, because the library does not. */
function lifeOf(smtp: SMTPConnection, socket: Socket) {
  let failure: Error | undefined
  let failUnderWay = (_failure: Error) => {}
  const end = (error: Error = ended()) => {
    failure ??= error
    failUnderWay(failure)
    socket.destroy()
  }
  smtp.on('error', end)
  smtp.on('end', () => end())
  socket.on('error', () => {})
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => {
      end(socket.errored ?? undefined)
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

const ended = () => Object.assign(new Error('Connection closed'), { code: 'ECONNECTION' })

/** Waits for one answer of the library. */
type UnderWay = (start: (done: (error?: Error | null) => void) => void) => Promise<unknown>

/** `false`: the settings contain no login. */
async function logIn(
  smtp: SMTPConnection,
  underWay: UnderWay,
  { username, password, oauth }: SmtpSettings,
  tokens: AccessTokens,
) {
  if (!username || !(password || oauth)) return false
  if (!smtp.allowsAuth) throw Object.assign(new Error('No AUTH'), { code: 'ENOAUTH' })
  const say = (token: string) =>
    underWay((done) => smtp.login({ method: 'TOKEN', user: username, token }, done)).catch(asSaid)
  if (!oauth) await underWay((done) => smtp.login({ user: username, pass: password }, done))
  else {
    const { token, isHeld } = await tokens.get(oauth)
    await say(token).catch(async (error: unknown) => {
      // The token may be revoked before its end. Then a new one is tried, once.
      if (!isHeld || Reflect.get(Object(error), 'responseCode') !== 535) throw error
      await say((await tokens.get(oauth, token)).token)
    })
  }
  return true
}

/** The library renews a token by itself, but only for some servers, and then hides the first answer. */
const sayToken: SMTPConnectionCustomAuthHandler = ({ auth, sendCommand, resolve, reject }) => {
  const { user, token } = auth
  const sasl = Buffer.from(`user=${user}\u0001auth=Bearer ${token}\u0001\u0001`).toString('base64')
  sendCommand(`AUTH XOAUTH2 ${sasl}`, (_error, { status, response }) => {
    if (status !== 334) return response.startsWith('2') ? resolve() : reject('Refused')
    // A 334 is a challenge that describes the error. The refusal comes after an empty line.
    sendCommand('', () => reject('Refused'))
  })
}

function asSaid(error: unknown): never {
  throw error instanceof Error ? Object.assign(error, { command: 'AUTH XOAUTH2' }) : error
}
