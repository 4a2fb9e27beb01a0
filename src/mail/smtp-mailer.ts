import { connect, isIPv4 } from 'node:net'
import { createTransport, type NodemailerError, type SMTPPoolOptions } from 'nodemailer'
import { AccountFlowsError } from '../errors.ts'
import type { Mailer } from '../ports.ts'
import { isMailAddress } from '../mail-address.ts'

export interface SmtpSettings {
  host: string
  port: number
  /** Used only together with `password`. */
  username?: string
  password?: string
  /** One plain address. */
  from: string
}

const CONNECT_MS = 10_000
const GREETING_MS = 10_000
const SOCKET_MS = 20_000
const IDLE_MS = 15_000
/** The time-outs above begin anew with every byte of the server; this one does not. */
const DELIVERY_MS = 30_000

/**
 * Sends through one SMTP server, over at most 5 connections that it keeps open. Port 465 is TLS from the first byte; on any
 * other port STARTTLS must succeed. Only a loopback host may do without, or show a certificate that nobody vouches for.
 *
 * `send` throws `ERR_MAIL_ADDRESS` before it talks to the server, `ERR_MAIL_REFUSED` where the server will never take this
 * mail, and `ERR_MAIL_FAILED` where a later attempt may succeed.
 */
export function smtpMailer(settings: SmtpSettings): Mailer & { close(): void } {
  const { from } = settings
  const transport = createTransport(transportOptions(settings))

  return {
    async send({ to, subject, text, html }) {
      if (!isMailAddress(from)) {
        throw new AccountFlowsError('ERR_MAIL_FAILED', 'The sender is not one plain address')
      }
      if (!isMailAddress(to)) {
        throw new AccountFlowsError('ERR_MAIL_ADDRESS', 'The recipient is not one plain address')
      }
      try {
        await transport.sendMail({
          from: { name: '', address: from },
          to: { name: '', address: to },
          envelope: { from, to },
          subject,
          text,
          html,
          headers: { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' },
          signal: AbortSignal.timeout(DELIVERY_MS),
        })
      } catch (error) {
        throw deliveryError(error)
      }
    },

    /** Deliveries in progress end first. */
    close: () => transport.close(),
  }
}

function transportOptions({ host, port, username, password, from }: SmtpSettings): SMTPPoolOptions {
  const isLoopback = isLoopbackHost(host)
  const isImplicitTls = port === 465
  return {
    pool: true,
    maxConnections: 5,
    // Whoever calls decides about the next attempt, with a new token (D20).
    maxRequeues: 0,
    host,
    port,
    // Otherwise the name of this machine stands in the headers of every mail.
    name: from.slice(from.lastIndexOf('@') + 1),
    ...(username && password ? { auth: { user: username, pass: password } } : {}),
    ...(host.toLowerCase() === 'localhost' ? { getSocket: connectToLocalhost } : {}),
    secure: isImplicitTls,
    requireTLS: !isImplicitTls && !isLoopback,
    tls: { minVersion: 'TLSv1.2', rejectUnauthorized: !isLoopback },
    connectionTimeout: CONNECT_MS,
    dnsTimeout: CONNECT_MS,
    greetingTimeout: GREETING_MS,
    socketTimeout: SOCKET_MS,
    // Below the socket's time-out, so that an unused connection says goodbye.
    idleTimeout: IDLE_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  }
}

function isLoopbackHost(host: string): boolean {
  return (
    host.toLowerCase() === 'localhost' ||
    host === '::1' ||
    (isIPv4(host) && host.startsWith('127.'))
  )
}

/** nodemailer asks a name server for `localhost`, which may be slow or name another machine; the system's own look-up is neither. */
const connectToLocalhost: NonNullable<SMTPPoolOptions['getSocket']> = ({ port }, callback) => {
  const connection = connect({ host: 'localhost', port: Number(port) })
  const fail = (error: Error) => callback(error)
  connection.setTimeout(CONNECT_MS, () => connection.destroy(new Error('Connection timed out')))
  connection.once('error', fail)
  connection.once('connect', () => {
    connection.setTimeout(0)
    connection.off('error', fail)
    callback(null, { connection })
  })
}

/** A refused login is the admin's to mend, so the mail itself may still succeed: only an answer to the mail is for good. */
function deliveryError(cause: unknown): AccountFlowsError {
  const { code, permanent, responseCode }: Partial<NodemailerError> =
    cause instanceof Error ? cause : {}
  const answersTheMail = code === 'EENVELOPE' || code === 'EMESSAGE'
  const needsLogin = responseCode === 530
  if (permanent && answersTheMail && !needsLogin) {
    return new AccountFlowsError(
      'ERR_MAIL_REFUSED',
      `The mail server refused the mail for good (${responseCode})`,
      { cause },
    )
  }
  const reason = responseCode ?? code ?? 'unknown reason'
  return new AccountFlowsError('ERR_MAIL_FAILED', `The mail was not sent (${reason})`, { cause })
}
