import { lookup } from 'node:dns/promises'
import { connect, isIP } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import type { Connection } from './connection.ts'
import { adviceOn, exitCodeOf, exitCodes, type ExitCode } from './exit-codes.ts'
import { AdminApiError, type Check } from '../src/admin/client.ts'

const TIMEOUT_MS = 10_000

interface Target {
  host: string
  port: number
  isTls: boolean
}

interface Finding {
  check: Check
  /** `undefined`: what comes next may be tried. */
  exitCode?: ExitCode
}

/** Whether this program reaches the admin API: each check as it is done, until one failed. */
export async function* ownChecks(connection: Connection): AsyncGenerator<Finding> {
  const target = targetOf(connection.url)
  yield { check: { step: 'url', status: 'ok', message: connection.url } }
  const steps = [
    () => checkName(target),
    () => checkConnection(target),
    ...(target.isTls ? [() => checkCertificate(target)] : []),
  ]
  for (const step of steps) {
    const check = await step()
    if (check.status === 'failed') {
      yield { check, exitCode: exitCodes.unreachable }
      return
    }
    yield { check }
  }
  yield* checkAdminApi(connection)
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
    return { step: 'server_dns', status: 'ok', message: `${host} is ${addresses}` }
  } catch (error) {
    const message = `${host} has no address (${codeOf(error)})`
    const advice = 'Check the host name in the URL, and the DNS server of this machine.'
    return { step: 'server_dns', status: 'failed', message, advice }
  }
}

async function checkConnection({ host, port }: Target): Promise<Check> {
  const socket = connect({ host, port, timeout: TIMEOUT_MS })
  const reason = await failureOf(socket, 'connect')
  socket.destroy()
  const step = 'server_connect'
  if (reason === undefined)
    return { step, status: 'ok', message: `${host} port ${port} accepts connections` }
  const message = `no connection to ${host} port ${port}: ${reason}`
  const advice =
    reason === 'ECONNREFUSED'
      ? 'Nothing listens there: check that the service runs, and that the port is right.'
      : 'Check for a firewall on the way, and that the service is on this host.'
  return { step, status: 'failed', message, advice }
}

async function checkCertificate({ host, port }: Target): Promise<Check> {
  const socket: TLSSocket = connectTls({
    host,
    port,
    timeout: TIMEOUT_MS,
    ...(!isIP(host) && { servername: host }),
  })
  const reason = await failureOf(socket, 'secureConnect')
  const protocol = socket.getProtocol()
  socket.destroy()
  if (reason === undefined) {
    return { step: 'server_tls', status: 'ok', message: `the certificate is trusted, ${protocol}` }
  }
  const message = `the certificate is not trusted, or there is no TLS: ${reason}`
  const advice = certificateAdvice[reason] ?? 'Check that this is an https port.'
  return { step: 'server_tls', status: 'failed', message, advice }
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

/** The code of what went wrong; `undefined`: nothing. */
function failureOf(socket: NodeJS.EventEmitter, done: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    socket.once(done, () => resolve(undefined))
    socket.once('timeout', () => resolve('no answer in time'))
    socket.on('error', (error) => resolve(codeOf(error)))
  })
}

function codeOf(error: unknown): string {
  return String(Reflect.get(Object(error), 'code') ?? 'the connection failed')
}

async function* checkAdminApi({ admin, url }: Connection): AsyncGenerator<Finding> {
  const answers: Check = { step: 'admin_api', status: 'ok', message: `${url}/admin/api answers` }
  const accepted: Check = { step: 'token', status: 'ok', message: 'the token is accepted' }
  try {
    await admin.getSettings()
    yield { check: answers }
    yield { check: accepted }
  } catch (error) {
    if (!(error instanceof AdminApiError)) throw error
    const { message, problem } = error
    const exitCode = exitCodeOf(error)
    if (problem === undefined) {
      yield { exitCode, check: { ...answers, status: 'failed', message } }
    } else if (exitCode === exitCodes.notAllowed) {
      yield { check: answers }
      yield { exitCode, check: refusedToken(error) }
    } else {
      yield { check: answers }
      yield { check: accepted }
      // Why, the checks of the server tell.
      yield { check: { step: 'settings', status: 'failed', message } }
    }
  }
}

function refusedToken({ message, status }: AdminApiError): Check {
  const advice = adviceOn(status)
  return { step: 'token', status: 'failed', message, ...(advice !== undefined && { advice }) }
}
