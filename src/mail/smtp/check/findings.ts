import { TLSSocket, type PeerCertificate } from 'node:tls'
import { missingForLogin } from '../../../settings/rules.ts'
import {
  isSmtpConfigured,
  settingsTable,
  type SettingKey,
  type Settings,
} from '../../../settings/table.ts'
import { finding, loginOf, offersTls, type Finding, type Seen } from './failures.ts'
import type { SmtpConnection } from '../connection.ts'
import { isLoopbackHost } from '../../../settings/addresses.ts'
import { tlsPolicy } from '../settings.ts'
import { timeout, type Clock } from '../../../clock.ts'
import { AccountFlowsError } from '../../../errors.ts'
import type { MailCheckOptions } from '../../sending.ts'
import type { MailTransport } from '../../../contract/index.ts'
import { handOver } from '../transport.ts'

/** How long the other side has to answer, in total. */
export const CHECK_MS = 30_000
const DAY_MS = 86_400_000
const SOON_DAYS = 14
const UNTRUSTED =
  'Use a certificate of a public authority, with its intermediate certificates. For an authority of your own, set NODE_EXTRA_CA_CERTS to its file and restart.'

export function checkSettings(settings: Settings): Finding {
  if (settings.smtpFault !== undefined) {
    const message = `${settings.smtpFault}. Mails wait until this is mended.`
    return finding('failed', message, 'Put the key back, or set the value again.')
  }
  const unset = (...keys: SettingKey[]) =>
    keys.filter((key) => settings[key] === undefined).map((key) => settingsTable[key].name)
  const missing = unset('smtpHost', 'smtpPort', 'smtpFrom').join(' and ')
  if (missing) {
    const message = `Mail is not configured: ${missing} missing. Mails wait until it is set.`
    return finding('failed', message, `Set ${missing}.`)
  }
  const [half, ...more] = missingForLogin(settings)
  if (half === undefined) return finding('ok', 'smtp_host, smtp_port and smtp_from are set.')
  if (settings.smtpAuth === 'xoauth2') {
    const names = [half, ...more].join(' and ')
    const message = `smtp_auth is xoauth2, but ${names} missing, so there is no login.`
    return finding('warning', message, `Set ${names}.`)
  }
  const given = half === 'smtp_username' ? 'smtp_password' : 'smtp_username'
  const message = `${given} is set but ${half} is not, so there is no login.`
  return finding('warning', message, `Set ${half}, or remove ${given}.`)
}

/** Checks the connection after the greeting. It refuses an untrusted certificate, as for mails. */
export function checkTls(seen: Seen, { smtp }: SmtpConnection, now: Date): Finding {
  const { host, tls: setting } = seen.settings
  const policy = tlsPolicy(seen.settings)
  const reply = seen.heard.at(-1) ?? ''
  const socket = smtp._socket
  if (!(socket instanceof TLSSocket)) return checkPlain(seen, reply)
  const way = `${policy.secure ? 'Implicit TLS' : 'STARTTLS'} (smtp_tls ${setting})`
  const certificate = socket.getPeerCertificate()
  const distrust = socket.authorized ? '' : String(socket.authorizationError)
  if (distrust && policy.tls.rejectUnauthorized) {
    const [fault, advice] = faultOf(distrust, certificate, host, now)
    return finding('failed', `${way}: the certificate ${fault} (${distrust}).`, advice)
  }
  const days = Math.floor((new Date(certificate.valid_to).getTime() - now.getTime()) / DAY_MS)
  const isEnding = !distrust && days < SOON_DAYS
  const verdict = distrust
    ? `is not trusted (${distrust}), but a loopback host may use it`
    : `is valid until ${day(certificate.valid_to)}`
  const cipher = `${socket.getProtocol()} with ${socket.getCipher().standardName}`
  const message = `${way}: ${cipher}; the certificate ${verdict}.`
  if (!isEnding) return finding('ok', message, undefined, reply)
  const advice = `It expires in ${days} days: renew it on the mail server.`
  return finding('warning', message, advice, reply)
}

function checkPlain(seen: Seen, reply: string): Finding {
  const { tls } = seen.settings
  if (tls !== 'none') {
    const message = `No TLS: the server does not offer it. A loopback host may go without (smtp_tls ${tls}).`
    return finding('ok', message, undefined, reply)
  }
  const message = 'smtp_tls is none: mails, links and the login are sent unencrypted.'
  const advice = offersTls(seen)
    ? 'This server offers STARTTLS: set smtp_tls to starttls.'
    : 'Use it only in a network that you trust.'
  return finding('warning', message, advice, reply)
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

export function checkLogin(seen: Seen, { smtp }: SmtpConnection): Finding {
  const reply = seen.heard.at(-1) ?? ''
  const isEncrypted = smtp._socket instanceof TLSSocket
  const message = `Logged in with ${loginOf(seen)}${isEncrypted ? '' : ', unencrypted'}.`
  if (isEncrypted || isLoopbackHost(seen.settings.host))
    return finding('ok', message, undefined, reply)
  const advice =
    'Others on the network could read the password: set smtp_tls to starttls or implicit, then change the password.'
  return finding('warning', message, advice, reply)
}

/** Replaces the SMTP steps. Only a handed-over mail shows whether a transport works. */
export async function checkTransport(
  transport: MailTransport,
  settings: Settings,
  { to, mail }: MailCheckOptions,
  clock: Clock,
): Promise<Finding> {
  if (to === undefined || !mail) {
    const message = 'Not checked: only a sent mail shows that the transport works.'
    return finding('skipped', message, 'Run account-flows mail test --to <your address>.')
  }
  const { signal, cancel } = timeout(clock, CHECK_MS)
  try {
    const { queueId } = await handOver(transport, { ...mail, to }, settings, signal)
    const name = queueId === undefined ? '' : `, as ${queueId}`
    return finding('ok', `The transport accepted the mail${name}.`)
  } catch (error) {
    if (!(error instanceof AccountFlowsError)) throw error
    const advice = 'Read what the mail service says, and check your code in the option transport.'
    return finding('failed', `${error.message}.`, advice, error.fault?.reply)
  } finally {
    cancel()
  }
}

export function checkSender(settings: Settings): Finding {
  const { smtpFrom: from } = settings
  const sender =
    from === undefined
      ? 'smtp_from is not set, so the transport chooses the sender'
      : `the sender is ${from}`
  const message = `Mails go to the transport of this server; ${sender}.`
  if (!isSmtpConfigured(settings)) return finding('ok', message)
  const advice =
    'smtp_host and smtp_port are set, but not used: unset them, or remove the option transport.'
  return finding('advice', message, advice)
}
