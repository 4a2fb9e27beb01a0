import { isLoopbackHost } from '../../settings/addresses.ts'
import { missingForLogin } from '../../settings/rules.ts'
import type { Settings } from '../../settings/table.ts'

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
export function tlsPolicy({
  smtpHost: host,
  smtpPort: port,
  smtpTls: tls,
}: Pick<SmtpSettings, 'smtpHost' | 'smtpPort' | 'smtpTls'>) {
  const isLenient = tls === 'auto' && isLoopbackHost(host)
  const secure = tls === 'implicit' || (tls === 'auto' && port === 465)
  return {
    /** TLS from the first byte. */
    secure,
    /** STARTTLS must succeed. */
    requireTLS: !secure && (tls === 'starttls' || (tls === 'auto' && !isLenient)),
    /** No STARTTLS, even if the server offers it. */
    ignoreTLS: tls === 'none',
    tls: { minVersion: 'TLSv1.2' as const, rejectUnauthorized: !isLenient },
  }
}
