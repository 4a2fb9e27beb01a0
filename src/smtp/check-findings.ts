import { TLSSocket, type PeerCertificate } from 'node:tls'
import { settingsTable, type Settings } from '../settings/table.ts'
import { loginOf, offersTls, type Finding, type Seen } from './check-failures.ts'
import type { SmtpConnection } from './connection.ts'
import { isLoopback, tlsPolicy } from './settings.ts'

const DAY_MS = 86_400_000
const SOON_DAYS = 14
const UNTRUSTED =
  'Use a certificate of a public authority, sent with those in between, or name the file of your own authority in NODE_EXTRA_CA_CERTS and start again.'

export const NO_LOGIN: Finding = {
  status: 'skipped',
  message: 'No smtp_username and smtp_password: not needed up to here.',
}
export const NO_RECIPIENT: Finding = {
  status: 'skipped',
  message: 'No recipient was tried.',
  advice: 'Give an address to try one.',
}
export const NOT_ONE_ADDRESS: Finding = {
  status: 'failed',
  message: 'The recipient is not one plain mail address, so nothing was said to the server.',
  advice: 'Give one address such as ada@example.org, without a name or brackets.',
}

export const ok = (message: string) => ({ status: 'ok', message }) as const
const warning = (message: string, advice: string) =>
  ({ status: 'warning', message, advice }) as const

export function judgeSettings(settings: Settings): Finding {
  const isMissing = (key: keyof Settings) => settings[key] === undefined
  const list = (keys: (keyof Settings)[]) =>
    keys.map((key) => settingsTable[key].name).join(' and ')
  const needed: (keyof Settings)[] = ['smtpHost', 'smtpPort', 'smtpFrom']
  const missing = list(needed.filter(isMissing))
  if (missing) {
    const message = `Mail is not configured: ${missing} missing. Until then mails wait.`
    return { status: 'failed', message, advice: `Set ${missing}.` }
  }
  const login: (keyof Settings)[] = ['smtpUsername', 'smtpPassword']
  const half = list(login.filter(isMissing))
  const given = list(login.filter((key) => !isMissing(key)))
  return half && given
    ? warning(
        `There is ${given} but no ${half}, so nobody logs in.`,
        `Set ${half}, or remove ${given}.`,
      )
    : ok('smtp_host, smtp_port and smtp_from are set.')
}

/** Of the connection after the greeting. A certificate that nobody vouches for is refused as it is for mails. */
export function judgeTls(seen: Seen, { smtp }: SmtpConnection, now: Date): Finding {
  const { settings, heard } = seen
  const { host, tls: setting } = settings
  const policy = tlsPolicy(settings)
  const reply = heard.at(-1) ?? ''
  if (!(smtp._socket instanceof TLSSocket)) {
    return { ...judgePlain(seen), reply }
  }
  const certificate = smtp._socket.getPeerCertificate()
  const distrust = smtp._socket.authorized ? '' : String(smtp._socket.authorizationError)
  const way = `${policy.secure ? 'Implicit TLS' : 'STARTTLS'} (smtp_tls ${setting})`
  if (distrust && policy.tls.rejectUnauthorized) {
    const [fault, advice] = faultOf(distrust, certificate, host, now)
    return { status: 'failed', message: `${way}: the certificate ${fault} (${distrust}).`, advice }
  }
  const spoken = `${way}: ${smtp._socket.getProtocol()} with ${smtp._socket.getCipher().standardName}`
  if (distrust) {
    const message = `${spoken}; the certificate is not trusted (${distrust}), which is accepted of a loopback host.`
    return { ...ok(message), reply }
  }
  const { valid_to: until } = certificate
  const message = `${spoken}; the certificate is valid until ${day(until)}.`
  const days = Math.floor((new Date(until).getTime() - now.getTime()) / DAY_MS)
  const soon = `It expires in ${days} days: renew it on the mail server.`
  return { ...(days < SOON_DAYS ? warning(message, soon) : ok(message)), reply }
}

function judgePlain(seen: Seen) {
  const { settings } = seen
  if (settings.tls !== 'none') {
    return ok(
      `No TLS: smtp_tls is ${settings.tls}, and a loopback host that does not offer it may do without.`,
    )
  }
  return warning(
    'smtp_tls is none: mails, links and the login go over the network in the clear.',
    offersTls(seen)
      ? 'This server offers STARTTLS: set smtp_tls to starttls.'
      : 'Use it only inside of a network that you trust.',
  )
}

function faultOf(
  code: string,
  { valid_from: from, valid_to: to, subjectaltname }: PeerCertificate,
  host: string,
  now: Date,
): [fault: string, advice: string] {
  const clock = `The clock of this machine says ${day(now)}: see whether it is right.`
  switch (code) {
    case 'CERT_HAS_EXPIRED':
      return [`expired (${day(to)})`, `It has to be renewed on the mail server. ${clock}`]
    case 'CERT_NOT_YET_VALID':
      return [`is valid only from ${day(from)} on`, clock]
    case 'ERR_TLS_CERT_ALTNAME_INVALID': {
      const names = (subjectaltname ?? 'nobody').replaceAll(/(?:DNS|IP Address):/g, '')
      const advice = 'Set smtp_host to one of these names if it is the same server.'
      return [`is not for ${host} but for ${names.slice(0, 200)}`, advice]
    }
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
      return ['is vouched for by nobody but itself', UNTRUSTED]
    default:
      return ['comes from an authority that is not trusted here', UNTRUSTED]
  }
}

const day = (time: string | Date) => new Date(time).toISOString().slice(0, 10)

export function judgeLogin(seen: Seen, { smtp }: SmtpConnection): Finding {
  const reply = seen.heard.at(-1) ?? ''
  const isEncrypted = smtp._socket instanceof TLSSocket
  const message = `Logged in with ${loginOf(seen)}${isEncrypted ? '' : ', unencrypted'}.`
  if (isEncrypted || isLoopback(seen.settings.host)) return { ...ok(message), reply }
  const advice =
    'Whoever reads along on the network has the password now: set smtp_tls to starttls or implicit, then change it.'
  return { ...warning(message, advice), reply }
}
