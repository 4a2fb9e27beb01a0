import { isLoopbackHost } from '../../settings/addresses.ts'
import { missingForLogin } from '../../settings/rules.ts'
import type { Settings } from '../../settings/table.ts'

/** Where the access token for a mailbox comes from. */
export interface OAuthSettings {
  endpoint: string
  clientId: string
  clientSecret: string | undefined
  /** `undefined`: the client asks for itself. */
  refreshToken: string | undefined
  scope: string | undefined
  /** The mailbox and the mail server that a token is for: it is shown to no other. */
  shownTo: string
}

export interface SmtpSettings {
  host: string
  port: number
  tls: Settings['smtpTls']
  /** Used only together with `password` or `oauth`, of which there is one at most. */
  username?: string | undefined
  password?: string | undefined
  oauth?: OAuthSettings
  /** One plain address. */
  from: string
  /** Shown before the address. `undefined`: nothing is. */
  fromName?: string | undefined
}

/** `undefined`: SMTP is not configured, or not to be used. Nobody logs in with less than a login needs. */
export function smtpSettings(settings: Settings): SmtpSettings | undefined {
  const { smtpHost: host, smtpPort: port, smtpFrom: from, smtpFromName: fromName } = settings
  if (settings.smtpFault !== undefined) return undefined
  if (host === undefined || port === undefined || from === undefined) return undefined
  const named = { host, port, tls: settings.smtpTls, from, fromName }
  if (missingForLogin(settings).length > 0) return named
  const { smtpUsername: username, smtpPassword: password } = settings
  if (settings.smtpAuth === 'xoauth2') return { ...named, username, oauth: oauthSettings(settings) }
  return { ...named, username, password }
}

function oauthSettings(settings: Settings): OAuthSettings {
  const { smtpOauthTokenEndpoint: endpoint = '', smtpOauthClientId: clientId = '' } = settings
  return {
    shownTo: `${settings.smtpUsername} at ${settings.smtpHost} port ${settings.smtpPort}`,
    endpoint,
    clientId,
    clientSecret: settings.smtpOauthClientSecret,
    refreshToken: settings.smtpOauthRefreshToken,
    scope: settings.smtpOauthScope,
  }
}

/**
 * The setting `smtp_tls`. `auto` is implicit TLS on port 465, and STARTTLS that must succeed on any other port. Only a loopback
 * host may go without TLS, or show an untrusted certificate.
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
