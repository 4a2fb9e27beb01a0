import type { NodemailerError } from 'nodemailer'
import { finding, type Finding, type MailStep } from '../../sending.ts'
import { endpointOf } from '../access-tokens.ts'
import type { SmtpConnection, SmtpParts } from '../connection.ts'
import { isNoToken } from '../answers.ts'

/** A check under way, and what it has learnt so far. */
export interface Seen extends SmtpParts {
  connection: SmtpConnection
  /** Commands, without secrets, and replies. */
  said: string[]
  heard: string[]
  isLate: boolean
}

/** Describes the failure of a step. An error of this package's own code is thrown again. */
export function explain(step: MailStep, error: unknown, seen: Seen): Finding {
  if (isNoToken(error)) {
    const code = error.fault?.code ?? ''
    return failed(/^\d/.test(code) ? 'refused token' : 'token', code, seen)
  }
  if (!(error instanceof Error) || error instanceof TypeError) throw error
  const failure: NodemailerError = error
  if (failure.code === undefined) throw error
  const code = codeOf(failure, seen)
  const way = wayOf(step, failure, seen)
  const isByToken =
    way === 'auth' && seen.settings.smtpAuth === 'xoauth2' && !/^(?:530|538|ENOAUTH)$/.test(code)
  return failed(isByToken ? 'auth token' : way, code, seen, { reply: failure.response })
}

/** @param more - values for the words of a failed step. */
export function failed(
  way: string,
  code: string,
  { settings, said }: Seen,
  more: { reply?: string | undefined; [name: string]: string | undefined } = {},
): Finding {
  const [login, endpoint] = [loginOf(said), endpointOf(settings)]
  const values = new Map(Object.entries({ ...settings, login, endpoint, code, ...more }))
  const [, error = code] = code.split(' ')
  const special = `${way} ${error}`
  const wordsIn = (table: Record<string, string>) => {
    const words = table[SAME[special] ?? special] ?? table[way] ?? ''
    return words.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(values.get(name)))
  }
  const isForNow = more.reply !== undefined && code.startsWith('4')
  return finding('failed', wordsIn(MESSAGES), isForNow ? LATER : wordsIn(ADVICE), more.reply)
}

function codeOf(failure: NodemailerError, { isLate }: Seen): string {
  const { responseCode, timeoutType, originalCode, code } = failure
  if (responseCode !== undefined) return String(responseCode)
  if (isLate || timeoutType !== undefined) return 'out of time'
  return code === 'EPROTOCOL' ? 'not SMTP' : (originalCode ?? String(code))
}

/** How the step failed: a key of the tables. */
function wayOf(step: MailStep, { code, responseCode }: NodemailerError, seen: Seen): string {
  const isUnreached = step === 'connect' && seen.connection.smtp.stage === 'init'
  if (step === 'dns' || code === 'ENOAUTH' || isUnreached) return step
  if (responseCode === undefined) {
    if (step === 'connect') return 'greeting'
    const isHandshake = step === 'tls' && (code === 'ETLS' || code === 'ESOCKET')
    return isHandshake && !seen.isLate ? 'handshake' : 'unanswered'
  }
  if (!isGreeted(seen)) return 'refused greeting'
  if (step !== 'tls') return step
  if (seen.said.at(-1) !== 'STARTTLS') return 'hello'
  return offersTls(seen) ? 'starttls' : 'stripped'
}

export const isGreeted = ({ heard }: Seen) => (heard[0] ?? '').startsWith('220')
export const offersTls = ({ heard }: Seen) => heard.some((each) => /[ -]STARTTLS\b/i.test(each))

export function loginOf(said: string[]): string {
  const command = said.findLast((each) => each.startsWith('AUTH ')) ?? 'AUTH'
  return command.split(' ', 2).join(' ')
}

const LATER = 'Try again in a few minutes.'
const CHECK_CLOCK = 'The clock of this machine says {today}: check that it is right.'
/** Failures that have the words of another one. */
const SAME: Record<string, string> = {
  'auth 538': 'auth 530',
  'refused token unauthorized_client': 'refused token invalid_client',
}

/** What happened, by the way in which a step fails. */
const MESSAGES: Record<string, string> = {
  dns: '{smtpHost} cannot be found ({code}).',
  connect: 'No connection to {smtpHost} port {smtpPort} ({code}).',
  'connect ECONNREFUSED': 'Nothing listens at {smtpHost} port {smtpPort} ({code}).',
  greeting: 'Connected to {smtpHost} port {smtpPort}, but no mail server answers there ({code}).',
  'refused greeting': 'The server refuses connections from this machine ({code}).',
  hello: 'The server refuses the first command, EHLO ({code}).',
  stripped: 'The server does not offer STARTTLS, which smtp_tls {smtpTls} requires.',
  starttls: 'The server offers STARTTLS, but then refuses it ({code}).',
  handshake: 'The TLS handshake failed ({code}).',
  certificate: '{way}: the certificate comes from an authority that is not trusted here ({code}).',
  'certificate CERT_HAS_EXPIRED': '{way}: the certificate expired ({until}) ({code}).',
  'certificate CERT_NOT_YET_VALID':
    '{way}: the certificate is valid only from {since} on ({code}).',
  'certificate ERR_TLS_CERT_ALTNAME_INVALID':
    '{way}: the certificate is not for {smtpHost} but for {names} ({code}).',
  'certificate DEPTH_ZERO_SELF_SIGNED_CERT':
    '{way}: the certificate is signed only by itself ({code}).',
  token: 'No access token came from {endpoint} ({code}).',
  'refused token': 'The token endpoint {endpoint} gives no access token ({code}).',
  'refused token invalid_client': 'The token endpoint {endpoint} refuses this client ({code}).',
  'refused token invalid_grant':
    'The token endpoint {endpoint} refuses the refresh token ({code}).',
  'refused token invalid_scope': 'The token endpoint {endpoint} refuses the scope ({code}).',
  auth: 'The server refuses the login with {login} ({code}).',
  'auth token': 'The mail server refuses the access token with {login} ({code}).',
  'auth token 504': 'The server refuses the login with {login} ({code}).',
  'auth 530': 'The server wants TLS before the login ({code}).',
  'auth ENOAUTH': 'A login is set, but the server offers no login here.',
  from: 'The server refuses the sender {smtpFrom} ({code}).',
  'from 530': 'The server wants a login first ({code}).',
  rcpt: 'The server refuses the recipient ({code}).',
  data: 'The server refuses the mail ({code}).',
  unanswered: 'No proper answer came ({code}).',
}

/** What to do about it. */
const ADVICE: Record<string, string> = {
  dns: 'Check the spelling of smtp_host. Check that this machine reaches its DNS server (/etc/resolv.conf). The name of a container or private host works only inside its own network.',
  connect:
    'Check smtp_host, smtp_port, and any firewall on the way. Many hosting providers block port 25: use 587.',
  'connect ECONNREFUSED':
    'Check that smtp_port is right (587, or 465 for implicit TLS), and that the server runs.',
  greeting:
    'Check smtp_host and smtp_port. A server with TLS from the first byte (port 465) needs smtp_tls implicit. Or the server blocks this machine: ask its operator.',
  'refused greeting':
    'Ask its operator whether the IP address of this machine is blocked. Or use the submission server and port of your mail provider.',
  hello: 'It does not accept this machine, or the domain of smtp_from: ask its operator.',
  stripped:
    'Check smtp_port (587; for 465 set smtp_tls to implicit). If STARTTLS worked before, somebody on the network may remove it: do not switch TLS off.',
  starttls: LATER,
  handshake:
    'On port 587 or 25, set smtp_tls to starttls. A server without TLS 1.2 needs an update. A proxy or firewall may also answer instead of the server.',
  certificate:
    'Use a certificate of a public authority, with its intermediate certificates. For an authority of your own, set NODE_EXTRA_CA_CERTS to its file and restart.',
  'certificate CERT_HAS_EXPIRED': `Renew it on the mail server. ${CHECK_CLOCK}`,
  'certificate CERT_NOT_YET_VALID': CHECK_CLOCK,
  'certificate ERR_TLS_CERT_ALTNAME_INVALID':
    'Set smtp_host to one of these names if it is the same server.',
  token: 'Check smtp_oauth_token_endpoint, and that this machine reaches it.',
  'refused token': 'Look up the error code of its answer, and check smtp_oauth_token_endpoint.',
  'refused token invalid_client':
    'Check smtp_oauth_client_id and smtp_oauth_client_secret. A secret may have expired: make a new one at the provider.',
  'refused token invalid_grant':
    'It expired or was revoked. Sign in at the provider again, and set the new smtp_oauth_refresh_token.',
  'refused token invalid_scope':
    'Check smtp_oauth_scope. For Microsoft 365 it is https://outlook.office365.com/.default.',
  auth: 'Check smtp_username (often the whole address) and smtp_password. Many providers want an app password or an API key here.',
  'auth token':
    'The token endpoint did its part. Check smtp_username (the mailbox) and smtp_oauth_scope. Check that this client may send as this mailbox.',
  'auth token 504': 'It does not support XOAUTH2: check smtp_host, or set smtp_auth to password.',
  'auth 504': 'It offers no login method that is supported here: PLAIN, LOGIN or CRAM-MD5.',
  'auth 530': 'Set smtp_tls to starttls, or to implicit on port 465.',
  'auth ENOAUTH':
    'Many servers offer a login only over TLS and on port 587, not 25. If this server needs no login, remove yours.',
  from: 'Set smtp_from to an address that this login may send from, or register its domain with the provider.',
  'from 530': 'Set smtp_username and smtp_password, or what smtp_auth xoauth2 needs.',
  rcpt: 'Check that the address exists. If the server does not relay our mail, set a login, or ask its operator to allow this machine.',
  data: 'The reason is in its answer: a filter, a quota, or a rule for the domain of smtp_from (SPF, DKIM, DMARC).',
  unanswered:
    'See the log of the mail server: it may block this machine, or be restarting. A proxy or firewall may also answer instead of it.',
}
