import { isLoopbackHost } from '../settings/loopback-host.ts'
import { missingForLogin } from '../settings/rules.ts'
import type { Settings } from '../settings/table.ts'

/** Where the access token for a mailbox comes from. */
export interface OAuthSettings {
  endpoint: string
  clientId: string
  clientSecret?: string
  /** `undefined`: the client asks for itself. */
  refreshToken?: string
  scope?: string
  /** The mailbox and the mail server that a token is for: it is shown to no other. */
  shownTo: string
}

export interface SmtpSettings {
  host: string
  port: number
  tls: Settings['smtpTls']
  /** Used only together with `password` or `oauth`, of which there is one at most. */
  username?: string
  password?: string
  oauth?: OAuthSettings
  /** One plain address. */
  from: string
  /** Shown before the address. `undefined`: nothing is. */
  fromName?: string
}

/** `undefined`: SMTP is not configured, or not to be used. Nobody logs in with less than a login needs. */
export function smtpSettings(settings: Settings): SmtpSettings | undefined {
  const { smtpHost: host, smtpPort: port, smtpFrom: from, smtpTls: tls } = settings
  const { smtpUsername: username, smtpPassword: password } = settings
  if (settings.smtpFault !== undefined) return undefined
  if (host === undefined || port === undefined || from === undefined) return undefined
  const { smtpFromName: fromName } = settings
  const named = { host, port, tls, from, ...(fromName !== undefined && { fromName }) }
  if (username === undefined || missingForLogin(settings).length > 0) return named
  if (settings.smtpAuth === 'xoauth2') return { ...named, username, oauth: oauthSettings(settings) }
  return password === undefined ? named : { ...named, username, password }
}

function oauthSettings(settings: Settings): OAuthSettings {
  const { smtpOauthTokenEndpoint: endpoint = '', smtpOauthClientId: clientId = '' } = settings
  const { smtpOauthClientSecret: clientSecret, smtpOauthRefreshToken: refreshToken } = settings
  const { smtpOauthScope: scope, smtpUsername, smtpHost, smtpPort } = settings
  return {
    shownTo: `${smtpUsername} at ${smtpHost} port ${smtpPort}`,
    endpoint,
    clientId,
    ...(clientSecret !== undefined && { clientSecret }),
    ...(refreshToken !== undefined && { refreshToken }),
    ...(scope !== undefined && { scope }),
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
