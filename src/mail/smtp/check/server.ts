import { isIP } from 'node:net'
import { TLSSocket } from 'node:tls'
import { later } from '../../../clock.ts'
import { isLoopbackHost, isMailAddress } from '../../../settings/addresses.ts'
import { finding, type CheckedStep, type Finding, type MailCheckOptions } from '../../sending.ts'
import { endpointOf } from '../access-tokens.ts'
import { shown } from '../answers.ts'
import { composeMail } from '../compose.ts'
import { logsInByToken, smtpConnection, tlsPolicy, type SmtpParts } from '../connection.ts'
import { explain, failed, isGreeted, loginOf, offersTls, type Seen } from './failures.ts'

/** How long the other side has to answer, in total. */
export const CHECK_MS = 30_000
const DAY_MS = 86_400_000
const SOON_DAYS = 14
const MAX_ADDRESSES = 4
const STEPS = ['dns', 'connect', 'tls', 'token', 'auth', 'from', 'rcpt', 'data'] as const

export const stepsOf = (smtp?: SmtpParts['settings']) =>
  STEPS.filter((step) => step !== 'token' || (smtp && logsInByToken(smtp)))

export async function checkServer(smtp: SmtpParts, options: MailCheckOptions) {
  const { settings, clock, tokens } = smtp
  const said: string[] = []
  const heard: string[] = []
  const connection = smtpConnection(smtp, {
    // The certificate is checked before the login. One that is refused during the handshake could not be described.
    tls: { ...tlsPolicy(settings).tls, rejectUnauthorized: false },
    transactionLog: true,
    logger: {
      debug({ tnx }: { tnx?: string }, message: string) {
        if (tnx === 'client') said.push(message)
        if (tnx === 'server') heard.push(message)
      },
    },
  })
  const seen: Seen = { ...smtp, connection, said, heard, isLate: false }
  const steps: CheckedStep[] = []
  const nextStep = () => stepsOf(settings)[steps.length] ?? 'data'
  const add = ({ reply, ...finding }: Finding) => {
    // The server may repeat a token, just like a password.
    const secret = tokens.held() ?? settings.smtpPassword
    const quote = reply !== undefined && { reply: shown(reply, settings.smtpUsername, secret) }
    steps.push({ step: nextStep(), ...finding, ...quote })
  }
  const cancel = later(clock, CHECK_MS, () => {
    seen.isLate = true
    connection.socket.destroy()
  })
  try {
    for await (const finding of walk(seen, options)) add(finding)
  } catch (error) {
    add(explain(nextStep(), error, seen))
  } finally {
    cancel()
    await connection.quit()
  }
  return steps
}

/** Yields one finding for each step, in order, until one fails. An error that it throws is the failure of the next step. */
async function* walk(seen: Seen, { to, mail }: MailCheckOptions): AsyncGenerator<Finding> {
  const { settings, connection, tokens, heard } = seen
  const { smtpHost: host, smtpPort: port, smtpFrom: from } = settings
  const ok = (message: string) => finding('ok', message)
  const taken = (message: string, reply = heard.at(-1)) => finding('ok', message, undefined, reply)

  const addresses = isIP(host) === 0 ? [] : [host]
  connection.socket.on('lookup', (error: Error | null, address) => {
    if (!error) addresses.push(address)
  })
  const reaching = connection.reach()
  // Reports the addresses of the host, even if it cannot be reached.
  await reaching.catch(() => {})
  if (addresses.length === 0) await reaching
  yield isIP(host) === 0
    ? ok(`${host} is ${addresses.slice(0, MAX_ADDRESSES).join(', ')}.`)
    : ok(`${host} is an IP address and needs no DNS look-up.`)
  await reaching

  const at = `Connected to ${connection.socket.remoteAddress ?? host} port ${port}`
  const isImplicit = tlsPolicy(settings).secure
  const greeting = connection.greet()
  await greeting.catch(() => {})
  if (!isImplicit && !isGreeted(seen)) await greeting
  yield isImplicit ? ok(`${at}.`) : taken(`${at}, and the server greets.`, heard[0])
  await greeting

  const tls = checkTls(seen)
  yield tls
  if (tls.status === 'failed') return

  if (logsInByToken(settings)) {
    await tokens.get()
    yield ok(`An access token came from ${endpointOf(settings)}.`)
  }

  yield (await connection.login())
    ? checkLogin(seen)
    : finding('skipped', 'No login is set, and none was needed so far.')

  await connection.say(`MAIL FROM:<${from}>`)
  yield taken(`The server accepts mail from ${from}.`)

  if (to === undefined) {
    yield finding('skipped', 'No recipient was tried.', 'To try one, give an address.')
    return
  }
  if (!isMailAddress(to)) {
    const advice = 'Give one address such as ada@example.org, without a name or brackets.'
    yield finding('failed', 'The recipient is not one plain mail address.', advice)
    return
  }
  await connection.say(`RCPT TO:<${to}>`)
  yield taken(`The server accepts mail to ${to}.`)

  if (!mail) return
  await connection.say('RSET')
  await connection.send(to, composeMail({ ...mail, to }, settings))
  yield taken('The server accepted the mail.')
}

/** Checks the connection after the greeting. It refuses an untrusted certificate, as for mails. */
function checkTls(seen: Seen): Finding {
  const now = seen.clock.now()
  const policy = tlsPolicy(seen.settings)
  const reply = seen.heard.at(-1) ?? ''
  const socket = seen.connection.smtp._socket
  if (!(socket instanceof TLSSocket)) return checkPlain(seen, reply)
  const way = `${policy.secure ? 'Implicit TLS' : 'STARTTLS'} (smtp_tls ${seen.settings.smtpTls})`
  const certificate = socket.getPeerCertificate()
  const distrust = socket.authorized ? '' : String(socket.authorizationError)
  if (distrust && policy.tls.rejectUnauthorized) {
    const { valid_from: from, valid_to: to, subjectaltname = 'nobody' } = certificate
    const names = subjectaltname.replaceAll(/(?:DNS|IP Address):/g, '').slice(0, 200)
    const values = { way, names, since: day(from), until: day(to), today: day(now) }
    return failed('certificate', distrust, seen, values)
  }
  const verdict = distrust
    ? `is not trusted (${distrust}), but a loopback host may use it`
    : `is valid until ${day(certificate.valid_to)}`
  const cipher = `${socket.getProtocol()} with ${socket.getCipher().standardName}`
  const message = `${way}: ${cipher}; the certificate ${verdict}.`
  const days = Math.floor((new Date(certificate.valid_to).getTime() - now.getTime()) / DAY_MS)
  const isEnding = !distrust && days < SOON_DAYS
  if (!isEnding) return finding('ok', message, undefined, reply)
  const advice = `It expires in ${days} days: renew it on the mail server.`
  return finding('warning', message, advice, reply)
}

function checkPlain(seen: Seen, reply: string): Finding {
  const { smtpTls: tls } = seen.settings
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

function day(time: string | Date): string {
  const at = new Date(time)
  return Number.isNaN(at.getTime()) ? 'an unknown day' : at.toISOString().slice(0, 10)
}

function checkLogin(seen: Seen): Finding {
  const reply = seen.heard.at(-1) ?? ''
  const isEncrypted = seen.connection.smtp._socket instanceof TLSSocket
  const message = `Logged in with ${loginOf(seen.said)}${isEncrypted ? '' : ', unencrypted'}.`
  if (isEncrypted || isLoopbackHost(seen.settings.smtpHost))
    return finding('ok', message, undefined, reply)
  const advice =
    'Others on the network could read the password: set smtp_tls to starttls or implicit, then change the password.'
  return finding('warning', message, advice, reply)
}
