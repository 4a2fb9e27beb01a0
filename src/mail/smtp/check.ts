import { isIP } from 'node:net'
import { later, type Clock } from '../../clock.ts'
import type { MailTransport } from '../../contract/index.ts'
import { isMailAddress } from '../../settings/addresses.ts'
import { explain, finding, isGreeted, type Finding, type Seen } from './check/failures.ts'
import {
  CHECK_MS,
  checkLogin,
  checkSender,
  checkSettings,
  checkTls,
  checkTransport,
} from './check/findings.ts'
import { shown } from './answers.ts'
import { createAccessTokens, type AccessTokens, type RefreshTokens } from './access-tokens.ts'
import { composeMail } from './compose.ts'
import { smtpConnection, type SmtpConnection } from './connection.ts'
import { smtpSettings, tlsPolicy, type SmtpSettings } from './settings.ts'
import type { CheckMail, CheckedStep, MailCheckOptions, MailStep } from '../sending.ts'

const STEPS: readonly MailStep[] = ['dns', 'connect', 'tls', 'auth', 'from', 'rcpt', 'data']
const stepsOf = (smtp?: SmtpSettings) => (smtp?.oauth ? STEPS.toSpliced(3, 0, 'token') : STEPS)
const MAX_ADDRESSES = 4

/** Takes at most 30 seconds, and 2 more to say goodbye. */
export function createMailCheck(
  clock: Clock,
  refreshTokens: RefreshTokens,
  transport?: MailTransport,
): CheckMail {
  // The checked settings may not be those in force. And a held token would hide that the endpoint gives no new one.
  const newTokens = () =>
    createAccessTokens(clock, {
      ...refreshTokens,
      current: ({ refreshToken }) => refreshToken,
      latest: async () => undefined,
    })

  return async (settings, options) => {
    // Production mails never leave through a stand-in, so the check covers SMTP instead.
    if (transport && !transport.isStandIn) {
      const found = await checkTransport(transport, settings, options, clock)
      return [
        { step: 'configuration', ...checkSender(settings) },
        { step: 'transport', ...found },
      ]
    }
    const smtp = smtpSettings(settings)
    const checked = smtp ? await checkServer(smtp, options, clock, newTokens()) : []
    const isFailed = !smtp || checked.some(({ status }) => status === 'failed')
    const message = isFailed ? 'Not tried: an earlier step failed.' : 'No mail was sent.'
    const rest = stepsOf(smtp).slice(checked.length)
    return [
      { step: 'configuration', ...checkSettings(settings) },
      ...checked,
      ...rest.map((step) => ({ step, status: 'skipped', message }) as const),
    ]
  }
}

async function checkServer(
  settings: SmtpSettings,
  options: MailCheckOptions,
  clock: Clock,
  tokens: AccessTokens,
) {
  const steps: CheckedStep[] = []
  const nextStep = () => stepsOf(settings)[steps.length] ?? 'data'
  const add = ({ reply, ...finding }: Finding) => {
    // The server may repeat a token, just like a password.
    const { username, password = tokens.held() } = settings
    const quote = reply !== undefined && { reply: shown(reply, { username, password }) }
    steps.push({ step: nextStep(), ...finding, ...quote })
  }
  const seen: Seen = { settings, said: [], heard: [], isConnected: false, isLate: false }
  const connection = listeningConnection(seen, clock, tokens)
  const cancel = later(clock, CHECK_MS, () => {
    seen.isLate = true
    connection.socket.destroy()
  })
  try {
    for await (const finding of walk(seen, connection, options, { clock, tokens })) add(finding)
  } catch (error) {
    add(explain(nextStep(), error, seen))
  } finally {
    cancel()
    await connection.quit()
  }
  return steps
}

/** Yields one finding for each step, in order, until one fails. An error that it throws is the failure of the next step. */
async function* walk(
  seen: Seen,
  connection: SmtpConnection,
  { to, mail }: MailCheckOptions,
  { clock, tokens }: { clock: Clock; tokens: AccessTokens },
): AsyncGenerator<Finding> {
  const { settings, heard } = seen
  const { host, port, from } = settings
  const { socket, smtp } = connection
  const ask = (command: string) =>
    connection.underWay((done) => smtp.login({ method: 'ASK', command }, done))
  const ok = (message: string) => finding('ok', message)
  const taken = (message: string, reply = heard.at(-1) ?? '') =>
    finding('ok', message, undefined, reply)

  const addresses = isIP(host) === 0 ? [] : [host]
  socket.on('lookup', (error: Error | null, address) => {
    if (!error) addresses.push(address)
  })
  const reaching = connection.reach()
  await reaching.catch(unless(() => addresses.length > 0))
  yield isIP(host) === 0
    ? ok(`${host} is ${addresses.slice(0, MAX_ADDRESSES).join(', ')}.`)
    : ok(`${host} is an IP address and needs no DNS look-up.`)
  await reaching
  seen.isConnected = true

  const at = `Connected to ${socket.remoteAddress ?? host} port ${port}`
  const isImplicit = tlsPolicy(settings).secure
  const greeting = connection.greet()
  await greeting.catch(unless(() => isImplicit || isGreeted(seen)))
  yield isImplicit ? ok(`${at}.`) : taken(`${at}, and the server greets.`, heard[0])
  await greeting

  const tls = checkTls(seen, connection, clock.now())
  yield tls
  if (tls.status === 'failed') return

  if (settings.oauth) {
    await tokens.get(settings.oauth)
    yield ok(`An access token came from ${new URL(settings.oauth.endpoint).host}.`)
  }

  yield (await connection.login())
    ? checkLogin(seen, connection)
    : finding('skipped', 'No login is set, and none was needed so far.')

  await ask(`MAIL FROM:<${from}>`)
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
  await ask(`RCPT TO:<${to}>`)
  yield taken(`The server accepts mail to ${to}.`)

  if (!mail) return
  await ask('RSET')
  await connection.send(to, composeMail({ ...mail, to }, settings))
  yield taken('The server accepted the mail.')
}

function unless(isEnough: () => boolean) {
  return (error: unknown) => {
    if (!isEnough()) throw error
  }
}

/** A connection that records its dialogue, without secrets, and that can say one command alone. */
function listeningConnection({ settings, said, heard }: Seen, clock: Clock, tokens: AccessTokens) {
  return smtpConnection(settings, clock, tokens, {
    // The certificate is checked before the login. One that is refused during the handshake could not be described.
    tls: { ...tlsPolicy(settings).tls, rejectUnauthorized: false },
    transactionLog: true,
    logger: {
      debug({ tnx }: { tnx?: string }, message: string) {
        if (tnx === 'client') said.push(message)
        if (tnx === 'server') heard.push(message)
      },
    },
    customAuth: {
      // This says one command alone; the library itself names sender and recipient only to send a mail.
      ASK({ auth, sendCommand, resolve, reject }) {
        sendCommand(String(auth['command']), (_error, { response }) =>
          response.startsWith('2') ? resolve() : reject('Refused'),
        )
      },
    },
  })
}
