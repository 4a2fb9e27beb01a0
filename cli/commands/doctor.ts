import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { AdminApiError, type Check } from '../../src/admin/client.ts'
import { reachCodeOf } from '../../src/errors.ts'
import { option, row, type Connection } from '../command.ts'
import { exitCodeOf, messageOf } from '../failure.ts'
import { exitCodes, type ExitCode, type Output } from '../output.ts'
import { linesOf } from '../table.ts'
import { checkText, statusText } from '../words.ts'

export const doctorCommand = row({
  name: 'doctor',
  help: 'Check the connection to the server. Then the server checks keys, database, clock, base URL and mail server.',
  options: [option('--to <address>', 'also ask the mail server if it accepts this address')],
  examples: ['doctor', 'doctor --to me@example.com'],
  run: examine,
})

/** The exit code by the failed check. If the settings cannot be read, the checks of the server say why. */
const EXIT_CODES: { [step: string]: ExitCode } = {
  token: exitCodes.notAllowed,
  settings: exitCodes.done,
}

async function examine({ to }: { to?: string }, connection: Connection): Promise<void> {
  const { admin, output, run } = connection
  const checks: Check[] = []
  const tell = (check: Check) => {
    checks.push(check)
    if (!output.isJson && check.status !== 'skipped')
      output.answer(check, (check) => checkText(check, output))
  }
  for await (const check of ownChecks(connection)) {
    tell(check)
    if (check.status !== 'failed') continue
    run.exitCode = EXIT_CODES[check.step] ?? exitCodes.unreachable
    break
  }
  if (run.exitCode === exitCodes.done) {
    const report = await admin.runDoctor({ to })
    report.checks.forEach(tell)
  }
  const ok = checks.every(({ status }) => status !== 'failed')
  if (!ok) run.exitCode ||= exitCodes.refused
  output.answer({ ok, checks }, ({ checks }) => reportEnd(checks, output))
}

/** What was skipped, in one line, and whether the service is ready. */
function reportEnd(checks: Check[], output: Output): string {
  const skipped = stepsOf(checks, 'skipped')
  return linesOf(
    skipped.length > 0 && `${statusText('skipped', output)} ${skipped.join(', ')}`,
    '',
    output.paint('bold', verdict(checks)),
  )
}

function verdict(checks: Check[]): string {
  const failed = checks.find(({ status }) => status === 'failed')
  const warnings = stepsOf(checks, 'warning').length
  if (failed) return `Not ready: ${reasonOf(failed)}`
  if (warnings === 0) return 'Ready.'
  return `Ready, with ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}.`
}

/** The first sentence, without its end, to stand behind a colon. */
function reasonOf({ message }: Check): string {
  if (message.startsWith('Mail is not configured')) return 'no mail server is set.'
  const [sentence = ''] = message.split(/\.(?: |$)/)
  return `${sentence.replace(/^[A-Z](?=[a-z ])/, (letter) => letter.toLowerCase())}.`
}

function stepsOf(checks: Check[], wanted: Check['status']): string[] {
  return checks.flatMap(({ step, status }) => (status === wanted ? step : []))
}

const TIMEOUT_MS = 10_000
const FAILED = 'the connection failed'

const ok = (step: string, message: string): Check => ({ step, status: 'ok', message })

function failed(step: string, message: string, advice?: string): Check {
  return { step, status: 'failed', message, ...(advice !== undefined && { advice }) }
}

/** Whether this program reaches the admin API. After a failed check, the others say nothing. */
async function* ownChecks({ admin, url }: Connection): AsyncGenerator<Check> {
  const target = new URL(url)
  yield ok('url', url)
  yield checkName(target.hostname.replace(/^\[|\]$/g, ''))
  // One request: the checks show how far it comes.
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  const error = await admin.getSettings({ signal }).then(() => undefined, toAdminApiError)
  yield* checkConnection(target, error)
  yield error && !error.problem
    ? failed('admin_api', error.message)
    : ok('admin_api', 'the admin API answers')
  yield error && exitCodeOf(error) === exitCodes.notAllowed
    ? failed('token', messageOf(error))
    : ok('token', 'the token is accepted')
  if (error) yield failed('settings', error.message)
}

async function checkName(host: string): Promise<Check> {
  if (isIP(host)) return { step: 'server_dns', status: 'skipped', message: `${host} is an address` }
  try {
    const found = await lookup(host, { all: true })
    const addresses = found.map(({ address }) => address).join(', ')
    return ok('server_dns', `${host} is ${addresses}`)
  } catch (error) {
    const message = `${host} has no address (${reachCodeOf(error, FAILED)})`
    const advice = 'Check the host name in the URL, and the DNS server of this machine.'
    return failed('server_dns', message, advice)
  }
}

function toAdminApiError(error: unknown): AdminApiError {
  if (error instanceof AdminApiError) return error
  throw error
}

/** Errors that end a request before TLS or HTTP begins. */
const NO_CONNECTION = /^(ECONNREFUSED|ETIMEDOUT|EHOST|ENET)/

function checkConnection({ host, protocol }: URL, error: AdminApiError | undefined): Check[] {
  const reason = error?.code === 'unreachable' ? reachCodeOf(error.cause, FAILED) : ''
  const isLate = error?.code === 'aborted' || reason === 'ABORT_ERR'
  if (isLate || NO_CONNECTION.test(reason)) {
    const message = `no connection to ${host}: ${isLate ? 'no answer in time' : reason}`
    const advice =
      reason === 'ECONNREFUSED'
        ? 'Nothing listens there: check that the service runs, and that the port is right.'
        : 'Check for a firewall on the way, and that the service is on this host.'
    return [failed('server_connect', message, advice)]
  }
  const connected = ok('server_connect', `${host} accepts connections`)
  if (protocol === 'http:') return [connected]
  if (reason === '') return [connected, ok('server_tls', 'the certificate is trusted')]
  const message = `the certificate is not trusted, or there is no TLS: ${reason}`
  const otherwise = /SELF_SIGNED|UNABLE_TO/.test(reason) ? OWN_AUTHORITY : NO_TLS
  return [connected, failed('server_tls', message, certificateAdvice[reason] ?? otherwise)]
}

const NO_TLS = 'Check that this is an https port.'
const OWN_AUTHORITY =
  'No authority that this machine trusts has signed it. For your own authority, set NODE_EXTRA_CA_CERTS to its file.'

const certificateAdvice: { [code: string]: string } = {
  CERT_HAS_EXPIRED: 'The certificate has expired: renew it.',
  CERT_NOT_YET_VALID: 'The certificate is not valid yet: check the clock of this machine.',
  ERR_TLS_CERT_ALTNAME_INVALID:
    'The certificate is for another host name: use that name in the URL.',
}
