import type { Socket } from 'node:net'
import SMTPConnection from 'nodemailer/lib/smtp-connection'
import { later, type Clock } from '../clock.ts'
import { domainOf } from './compose.ts'
import { tlsPolicy, type SmtpSettings } from './settings.ts'

/** Looking the host up, and connecting. */
const CONNECT_MS = 10_000
const GREETING_MS = 10_000
/** Without a byte from the server. */
const SOCKET_MS = 20_000
const RESET_MS = 5_000
const QUIT_MS = 2_000
const MAX_REPLY_BYTES = 65_536
/** Servers take only so many over one connection. */
const MAX_MAILS = 100

/** A dialogue with a mail server, logged in. What is under way when its socket closes fails. */
export interface SmtpSession {
  socket: Socket
  send(from: string, to: string, message: Buffer): Promise<void>
  /** Whether the server still answers. It forgets a mail that it refused. */
  reset(): Promise<boolean>
  /** Whether it is good for another mail. */
  mayGoOn(): boolean
  /** Says goodbye, and closes the socket within 2 seconds. */
  quit(): void
}

/**
 * Opens a dialogue over a socket that is connecting. Whoever destroys the socket ends it, at any stage. Fails with the error of
 * the library or of the system, and then the socket is closed.
 */
export async function openSmtpSession(
  socket: Socket,
  settings: SmtpSettings,
  clock: Clock,
): Promise<SmtpSession> {
  const { host, port, from, username, password } = settings
  await connected(socket, clock)
  const connection = new SMTPConnection({
    connection: socket,
    host,
    port,
    // Otherwise the name of this machine is told to the server.
    name: domainOf(from),
    ...tlsPolicy(settings),
    connectionTimeout: CONNECT_MS,
    greetingTimeout: GREETING_MS,
    socketTimeout: SOCKET_MS,
    socketCloseTimeout: 0,
    maxResponseSize: MAX_REPLY_BYTES,
  })

  let mails = 0
  let failure: Error | undefined
  let failUnderWay = (_failure: Error) => {}
  const end = (error: Error) => {
    failure ??= error
    failUnderWay(failure)
    socket.destroy()
  }
  connection.on('error', end)
  connection.on('end', () => end(closedError()))
  socket.on('close', () => {
    end(closedError())
    connection.close()
  })

  /** One command at a time. The library does not answer where the connection ends. */
  const underWay = (start: (done: (error?: Error | null) => void) => void) =>
    new Promise<void>((resolve, reject) => {
      if (failure) return reject(failure)
      failUnderWay = reject
      start((error) => (error ? reject(error) : resolve()))
    })

  try {
    await underWay((done) => connection.connect(done))
    if (username && password) {
      if (!connection.allowsAuth) throw Object.assign(new Error('No AUTH'), { code: 'ENOAUTH' })
      await underWay((done) => connection.login({ user: username, pass: password }, done))
    }
  } catch (error) {
    connection.close()
    throw error
  }

  return {
    socket,

    send(from, to, message) {
      mails += 1
      return underWay((done) => connection.send({ from, to }, message, done))
    },

    mayGoOn: () => !failure && mails < MAX_MAILS,

    async reset() {
      const cancel = later(clock, RESET_MS, () => socket.destroy())
      try {
        await underWay((done) => connection.reset(done))
        return true
      } catch {
        return false
      } finally {
        cancel()
      }
    },

    quit() {
      if (failure) return
      socket.once(
        'close',
        later(clock, QUIT_MS, () => socket.destroy()),
      )
      connection.quit()
    },
  }
}

function connected(socket: Socket, clock: Clock): Promise<void> {
  return new Promise((resolve, reject) => {
    const timedOut = Object.assign(new Error('Not connected in time'), { code: 'ETIMEDOUT' })
    const cancel = later(clock, CONNECT_MS, () => socket.destroy(timedOut))
    const fail = () => {
      cancel()
      reject(socket.errored ?? closedError())
    }
    if (socket.closed) return fail()
    socket.once('close', fail)
    socket.once('connect', () => {
      cancel()
      socket.off('close', fail)
      resolve()
    })
  })
}

const closedError = () => Object.assign(new Error('Connection closed'), { code: 'ECONNECTION' })
