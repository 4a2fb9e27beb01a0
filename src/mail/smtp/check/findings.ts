import { TLSSocket, type PeerCertificate } from 'node:tls'
import { missingForLogin } from '../../../settings/rules.ts'
import { settingsTable, type SettingKey, type Settings } from '../../../settings/table.ts'
import { finding, loginOf, offersTls, type Finding, type Seen } from './failures.ts'
import type { SmtpConnection } from '../connection.ts'
import { isLoopbackHost } from '../../../settings/addresses.ts'
import { tlsPolicy } from '../settings.ts'

const DAY_MS = 86_400_000
const SOON_DAYS = 14
const UNTRUSTED =
  'Use a certificate of a public authority, with its intermediate certificates. For an authority of your own, set NODE_EXTRA_CA_CERTS to its file and restart.'

export function judgeSettings(settings: Settings): Finding {
  if (settings.smtpFault !== undefined) {
    const advice = 'Put the key back, or set the value again.'
    return finding('failed', `${settings.smtpFault}. Mails wait until this is mended.`, { advice })
  }
  const unset = (...keys: SettingKey[]) =>
    keys.filter((key) => settings[key] === undefined).map((key) => settingsTable[key].name)
  const missing = unset('smtpHost', 'smtpPort', 'smtpFrom').join(' and ')
  if (missing) {
    const message = `Mail is not configured: ${missing} missing. Mails wait until it is set.`
    return finding('failed', message, { advice: `Set ${missing}.` })
  }
  const [half, ...more] = missingForLogin(settings)
  if (half === undefined) return finding('ok', 'smtp_host, smtp_port and smtp_from are set.')
  if (settings.smtpAuth === 'xoauth2') {
    const names = [half, ...more].join(' and ')
    const message = `smtp_auth is xoauth2, but ${names} missing, so there is no login.`
    return finding('warning', message, { advice: `Set ${names}.` })
  }
  const given = half === 'smtp_username' ? 'smtp_password' : 'smtp_username'
  return finding('warning', `${given} is set but ${half} is not, so there is no login.`, {
    advice: `Set ${half}, or remove ${given}.`,
  })
}

/** Of the connection after the greeting. A certificate that nobody vouches for is refused as it is for mails. */
export function judgeTls(seen: Seen, { smtp }: SmtpConnection, now: Date): Finding {
  const { host, tls: setting } = seen.settings
  const policy = tlsPolicy(seen.settings)
  const reply = seen.heard.at(-1) ?? ''
  const socket = smtp._socket
  if (!(socket instanceof TLSSocket)) return judgePlain(seen, reply)
  const way = `${policy.secure ? 'Implicit TLS' : 'STARTTLS'} (smtp_tls ${setting})`
  const certificate = socket.getPeerCertificate()
  const distrust = socket.authorized ? '' : String(socket.authorizationError)
  if (distrust && policy.tls.rejectUnauthorized) {
    const [fault, advice] = faultOf(distrust, certificate, host, now)
    return finding('failed', `${way}: the certificate ${fault} (${distrust}).`, { advice })
  }
  const days = Math.floor((new Date(certificate.valid_to).getTime() - now.getTime()) / DAY_MS)
  const isEnding = !distrust && days < SOON_DAYS
  const verdict = distrust
    ? `is not trusted (${distrust}), but a loopback host may use it`
    : `is valid until ${day(certificate.valid_to)}`
  return finding(
    isEnding ? 'warning' : 'ok',
    `${way}: ${socket.getProtocol()} with ${socket.getCipher().standardName}; the certificate ${verdict}.`,
    {
      reply,
      ...(isEnding && { advice: `It expires in ${days} days: renew it on the mail server.` }),
    },
  )
}

function judgePlain(seen: Seen, reply: string): Finding {
  const { tls } = seen.settings
  if (tls !== 'none') {
    const message = `No TLS: the server does not offer it. A loopback host may go without (smtp_tls ${tls}).`
    return finding('ok', message, { reply })
  }
  return finding('warning', 'smtp_tls is none: mails, links and the login are sent unencrypted.', {
    reply,
    advice: offersTls(seen)
      ? 'This server offers STARTTLS: set smtp_tls to starttls.'
      : 'Use it only in a network that you trust.',
  })
}

function faultOf(
  code: string,
  { valid_from: from, valid_to: to, subjectaltname }: PeerCertificate,
  host: string,
  now: Date,
): [fault: string, advice: string] {
  const clock = `The clock of this machine says ${day(now)}: check that it is right.`
  switch (code) {
    case 'CERT_HAS_EXPIRED':
      return [`expired (${day(to)})`, `Renew it on the mail server. ${clock}`]
    case 'CERT_NOT_YET_VALID':
      return [`is valid only from ${day(from)} on`, clock]
    case 'ERR_TLS_CERT_ALTNAME_INVALID': {
      const names = (subjectaltname ?? 'nobody').replaceAll(/(?:DNS|IP Address):/g, '')
      const advice = 'Set smtp_host to one of these names if it is the same server.'
      return [`is not for ${host} but for ${names.slice(0, 200)}`, advice]
    }
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
      return ['is signed only by itself', UNTRUSTED]
    default:
      return ['comes from an authority that is not trusted here', UNTRUSTED]
  }
}

function day(time: string | Date): string {
  const at = new Date(time)
  return Number.isNaN(at.getTime()) ? 'an unknown day' : at.toISOString().slice(0, 10)
}

export function judgeLogin(seen: Seen, { smtp }: SmtpConnection): Finding {
  const reply = seen.heard.at(-1) ?? ''
  const isEncrypted = smtp._socket instanceof TLSSocket
  const message = `Logged in with ${loginOf(seen)}${isEncrypted ? '' : ', unencrypted'}.`
  if (isEncrypted || isLoopbackHost(seen.settings.host)) return finding('ok', message, { reply })
  const advice =
    'Others on the network could read the password: set smtp_tls to starttls or implicit, then change the password.'
  return finding('warning', message, { reply, advice })
}
