import { isLoopbackHost } from '../settings/loopback-host.ts'
import type { Settings } from '../settings/table.ts'

export interface SmtpSettings {
  host: string
  port: number
  tls: Settings['smtpTls']
  /** Used only together with `password`. */
  username?: string
  password?: string
  /** One plain address. */
  from: string
  /** Shown before the address. `undefined`: nothing is. */
  fromName?: string
}

/** `undefined`: SMTP is not configured. User and password only as a pair. */
export function smtpSettings(settings: Settings): SmtpSettings | undefined {
  const { smtpHost: host, smtpPort: port, smtpFrom: from, smtpTls: tls } = settings
  const { smtpUsername: username, smtpPassword: password } = settings
  if (host === undefined || port === undefined || from === undefined) return undefined
  const { smtpFromName: fromName } = settings
  const named = { host, port, tls, from, ...(fromName !== undefined && { fromName }) }
  return username === undefined || password === undefined ? named : { ...named, username, password }
}

/**
 * The setting `smtp_tls`. `auto` is implicit TLS on port 465, and STARTTLS that must succeed on any other; only a loopback
 * host may do without, or show a certificate that nobody vouches for.
 */
export function tlsPolicy({ host, port, tls }: SmtpSettings) {
  const isLenient = tls === 'auto' && isLoopbackHost(host)
  const secure = tls === 'implicit' || (tls === 'auto' && port === 465)
  return {
    /** TLS from the first byte. */
    secure,
    /** STARTTLS must succeed. */
    requireTLS: !secure && (tls === 'starttls' || (tls === 'auto' && !isLenient)),
    /** No STARTTLS, even where it is offered. */
    ignoreTLS: tls === 'none',
    tls: { minVersion: 'TLSv1.2' as const, rejectUnauthorized: !isLenient },
  }
}
