import { spawn, type ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { compiledCheckout } from './compiled-checkout.ts'
import { freePort } from './free-port.ts'
import { ROOT } from './sources.ts'

/** Before mocha gives up, which could not tell why. */
const START_LIMIT_MS = 50_000

/** What the example server reads; nothing of the developer's own gets into a test. */
const VARIABLES =
  /^(HOST|PORT|BASE_URL|OAUTH_PATH|MONGODB_URI|RECORDS|ADMIN_TOKEN|SIGNING_KEYS|(SEED|SETTINGS)_FILE|VIEWS_DIRECTORY|RESPONSE_DELAY_(FLOOR|JITTER)_MS|TRUST_PROXY|MAILBOX|BCRYPT_COST|NODE_ENV)$/

const DEFAULTS: Variables = {
  RESPONSE_DELAY_FLOOR_MS: '0',
  RESPONSE_DELAY_JITTER_MS: '0',
  BCRYPT_COST: '4',
  ADMIN_TOKEN: 'an-admin-token-of-the-tests-long-enough',
  SIGNING_KEYS: Buffer.alloc(32, 'a key of the tests ').toString('base64url'),
}

/** `undefined`: unset, whatever the default of the tests is. */
export type Variables = Record<string, string | undefined>

export interface ExampleServer {
  baseUrl: string
  /** Where it listens; another one than that of the base URL when `BASE_URL` is given. */
  port: number
  pid: number
  /** Of `Authorization: Bearer` at the admin API. */
  adminToken: string
  /** All that it printed so far, on both streams. */
  output(): string
  /** SIGTERM; answers the exit code. */
  stop(): Promise<number | null>
  signal(signal: NodeJS.Signals): void
  /** SIGKILL. */
  kill(): Promise<void>
}

/** Starts the example server, compiled, on a free port and waits for its READY line. `command` of the shell: another way to start it. */
export async function startExampleServer(
  variables: Variables = {},
  command?: string,
): Promise<ExampleServer> {
  const port = variables['PORT'] ?? String(await freePort())
  const child = spawnServer({ ...DEFAULTS, PORT: port, ...variables }, command)
  const { output, exited } = child
  const baseUrl = await new Promise<string>((resolve, reject) => {
    const fail = (what: string) => reject(new Error(`the example server ${what}:\n${output()}`))
    const timer = setTimeout(() => {
      child.process.kill('SIGKILL')
      fail('is not ready in time')
    }, START_LIMIT_MS)
    child.process.stdout?.on('data', () => {
      const ready = /^READY (.*)$/m.exec(output())?.[1]
      if (ready === undefined) return
      clearTimeout(timer)
      resolve(ready)
    })
    child.process.once('close', (code) => {
      clearTimeout(timer)
      fail(`exited with ${code}`)
    })
  })

  return {
    baseUrl,
    port: Number(port),
    pid: child.process.pid ?? NaN,
    adminToken:
      /^Admin token: (.*)$/m.exec(output())?.[1] ??
      variables['ADMIN_TOKEN'] ??
      DEFAULTS['ADMIN_TOKEN'] ??
      '',
    output,
    stop() {
      child.process.kill('SIGTERM')
      return exited
    },
    signal: (signal) => void child.process.kill(signal),
    async kill() {
      child.process.kill('SIGKILL')
      await exited
    },
  }
}

/** The server of the suite that asks for it, from its first hook to its end. Variables that a hook makes are given as a function. */
export function suiteExampleServer(variables: Variables | (() => Variables) = {}): ExampleServer {
  const server = {} as ExampleServer
  let kill = async () => {}
  before('the example server runs', async function () {
    this.timeout(120_000)
    const given = typeof variables === 'function' ? variables() : variables
    Object.assign(server, await startExampleServer(given))
    kill = server.kill
  })
  after(() => kill())
  return server
}

/** For a server that is expected to refuse to start. */
export async function refusedExampleServer(
  variables: Variables,
): Promise<{ exitCode: number | null; errors: string }> {
  const child = spawnServer({ ...DEFAULTS, PORT: String(await freePort()), ...variables })
  const timer = setTimeout(() => child.process.kill('SIGKILL'), START_LIMIT_MS)
  const exitCode = await child.exited
  clearTimeout(timer)
  return { exitCode, errors: child.errors() }
}

function spawnServer(variables: Variables, command?: string) {
  const inherited = Object.entries(process.env).filter(([name]) => !VARIABLES.test(name))
  const [program, ...args] = command
    ? ['/bin/sh', '-c', command]
    : [process.execPath, join(compiledCheckout(), 'examples/server.js')]
  const child = spawn(program, args, {
    cwd: ROOT,
    env: { ...Object.fromEntries(inherited), ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running.add(child)
  let output = ''
  let errors = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output += text
    errors += text
  })
  const exited = new Promise<number | null>((resolve) => {
    child.once('close', (code) => {
      running.delete(child)
      resolve(code)
    })
  })
  return { process: child, output: () => output, errors: () => errors, exited }
}

// A test run that breaks off leaves no server behind.
const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})
