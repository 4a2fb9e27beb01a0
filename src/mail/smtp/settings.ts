import { isLoopbackHost } from '../../settings/addresses.ts'
import { missingForLogin } from '../../settings/rules.ts'
import type { Settings } from '../../settings/table.ts'

/** The source of the access token for a mailbox. */
export interface OAuthSettings {
  endpoint: string
  clientId: string
  clientSecret: string | undefined
  /** `undefined`: the client asks in its own name. */
  refreshToken: string | undefined
  scope: string | undefined
}

export interface SmtpSettings {
  host: string
  port: number
  tls: Settings['smtpTls']
  /** `undefined`: there is no login. Otherwise `password` or `oauth` is set, too. */
  username?: string | undefined
  password?: string | undefined
  oauth?: OAuthSettings
  /** One plain address. */
  from: string
  fromName?: string | undefined
}

/** `undefined`: SMTP is not configured, or must not be used. If a part of the login is missing, the connection has no login. */
export function smtpSettings(settings: Settings): SmtpSettings | undefined {
  const { smtpHost: host, smtpPort: port, smtpFrom: from, smtpFromName: fromName } = settings
  if (settings.smtpFault !== undefined) return undefined
  if (host === undefined || port === undefined || from === undefined) return undefined
  const named = { host, port, tls: settings.smtpTls, from, fromName }
  if (missingForLogin(settings).length > 0) return named
  const { smtpUsername: username, smtpPassword: password } = settings
  if (settings.smtpAuth !== 'xoauth2') return { ...named, username, password }
  const { smtpOauthTokenEndpoint: endpoint = '', smtpOauthClientId: clientId = '' } = settings
  const oauth = {
    endpoint,
    clientId,
    clientSecret: settings.smtpOauthClientSecret,
    refreshToken: settings.smtpOauthRefreshToken,
    scope: settings.smtpOauthScope,
  }
  return { ...named, username, oauth }
}

/**
 * The setting `smtp_tls`. `auto` is implicit TLS on port 465, and STARTTLS that must succeed on any other port. Only a loopback host may go
 * without TLS, or show an untrusted certificate.
 */
export function tlsPolicy({ host, port, tls }: SmtpSettings) {
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
