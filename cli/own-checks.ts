import { lookup } from 'node:dns/promises'
import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { reachCodeOf } from '../src/answer.ts'
import type { Connection } from './connection.ts'
import { adviceOn, exitCodeOf, exitCodes, type ExitCode } from './exit-codes.ts'
import { AdminApiError, type Check } from '../src/admin/client.ts'

const TIMEOUT_MS = 10_000
const FAILED = 'the connection failed'

const ok = (step: string, message: string): Check => ({ step, status: 'ok', message })

function failed(step: string, message: string, advice?: string): Check {
  return { step, status: 'failed', message, ...(advice !== undefined && { advice }) }
}

interface Target {
  host: string
  port: number
  isTls: boolean
}

/** Whether this program reaches the admin API. Tells each check as it is done, until one failed, and answers the exit code. */
export async function ownChecks(
  connection: Connection,
  tell: (check: Check) => void,
): Promise<ExitCode> {
  const target = targetOf(connection.url)
  tell(ok('url', connection.url))
  const steps = [checkName, checkConnection, ...(target.isTls ? [checkCertificate] : [])]
  for (const step of steps) {
    const check = await step(target)
    tell(check)
    if (check.status === 'failed') return exitCodes.unreachable
  }
  return checkAdminApi(connection, tell)
}

function targetOf(url: string): Target {
  const { hostname, port, protocol } = new URL(url)
  const isTls = protocol === 'https:'
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || (isTls ? 443 : 80)), isTls }
}

async function checkName({ host }: Target): Promise<Check> {
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

async function checkConnection({ host, port }: Target): Promise<Check> {
  const reason = await failureOf(connect({ host, port, timeout: TIMEOUT_MS }), 'connect')
  if (reason === undefined) return ok('server_connect', `${host} port ${port} accepts connections`)
  const message = `no connection to ${host} port ${port}: ${reason}`
  const advice =
    reason === 'ECONNREFUSED'
      ? 'Nothing listens there: check that the service runs, and that the port is right.'
      : 'Check for a firewall on the way, and that the service is on this host.'
  return failed('server_connect', message, advice)
}

async function checkCertificate({ host, port }: Target): Promise<Check> {
  const servername = isIP(host) ? {} : { servername: host }
  const socket = connectTls({ host, port, timeout: TIMEOUT_MS, ...servername })
  let protocol: string | null = null
  socket.once('secureConnect', () => (protocol = socket.getProtocol()))
  const reason = await failureOf(socket, 'secureConnect')
  if (reason === undefined) return ok('server_tls', `the certificate is trusted, ${protocol}`)
  const message = `the certificate is not trusted, or there is no TLS: ${reason}`
  const advice = certificateAdvice[reason] ?? 'Check that this is an https port.'
  return failed('server_tls', message, advice)
}

const OWN_AUTHORITY =
  'No authority that this machine trusts has signed it. For your own authority, set NODE_EXTRA_CA_CERTS to its file.'

const certificateAdvice: { [code: string]: string } = {
  CERT_HAS_EXPIRED: 'The certificate has expired: renew it.',
  CERT_NOT_YET_VALID: 'The certificate is not valid yet: check the clock of this machine.',
  ERR_TLS_CERT_ALTNAME_INVALID:
    'The certificate is for another host name: use that name in the URL.',
  DEPTH_ZERO_SELF_SIGNED_CERT: OWN_AUTHORITY,
  SELF_SIGNED_CERT_IN_CHAIN: OWN_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: OWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: OWN_AUTHORITY,
}

/** The code of what went wrong; `undefined`: nothing. The connection is ended. */
async function failureOf(socket: Socket, done: string): Promise<string | undefined> {
  const failure = await new Promise<string | undefined>((resolve) => {
    socket.once(done, () => resolve(undefined))
    socket.once('timeout', () => resolve('no answer in time'))
    socket.on('error', (error) => resolve(reachCodeOf(error, FAILED)))
  })
  socket.destroy()
  return failure
}

async function checkAdminApi(
  { admin, url }: Connection,
  tell: (check: Check) => void,
): Promise<ExitCode> {
  const error = await admin.getSettings().then(() => undefined, adminApiError)
  const exitCode = error ? exitCodeOf(error) : exitCodes.done
  const message = error?.message ?? ''
  if (error && !error.problem) {
    tell(failed('admin_api', message))
    return exitCode
  }
  tell(ok('admin_api', `${url}/admin/api answers`))
  if (exitCode === exitCodes.notAllowed) {
    tell(failed('token', message, adviceOn[error?.status ?? 0]))
    return exitCode
  }
  tell(ok('token', 'the token is accepted'))
  // Why, the checks of the server tell.
  if (error) tell(failed('settings', message))
  return exitCodes.done
}

function adminApiError(error: unknown): AdminApiError {
  if (error instanceof AdminApiError) return error
  throw error
}
