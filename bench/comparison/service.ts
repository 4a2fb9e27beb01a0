import { fork, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { compiledCheckout } from '../../test/support/compiled-checkout.ts'
import { eventually } from '../../test/support/eventually.ts'
import { freePort } from '../../test/support/serve.ts'

/** Where all of them send their mails. */
export interface MailSink {
  port: number
  links: Map<string, string>
  /** How many mails arrived, and when the last one did. */
  count: number
  lastAt: number
  close(): void
}

type FromSink = { port: number; to?: undefined } | { to: string; link: string | undefined }

export async function startMailSink(): Promise<MailSink> {
  const child = fork(fileURLToPath(new URL('../mail-sink.ts', import.meta.url)), ['told'])
  const sink: MailSink = { port: 0, links: new Map(), count: 0, lastAt: 0, close: () => close() }
  const close = () => child.disconnect()
  child.on('message', (message: FromSink) => {
    if (message.to === undefined) {
      sink.port = message.port
      return
    }
    sink.count += 1
    sink.lastAt = performance.now()
    if (message.link !== undefined) sink.links.set(message.to, message.link)
  })
  await eventually('the mail server listens', () => sink.port > 0, 20_000)
  return sink
}

export interface Service {
  base: string
  /** Memory in use. `undefined`: this system does not tell. */
  megabytes(): number | undefined
  stop(): Promise<void>
}

/** @param server - a file below `bench/`, which prints READY. */
export async function startService(server: string, env: Record<string, string>): Promise<Service> {
  const port = await freePort()
  const file = fileURLToPath(new URL(`../${server}`, import.meta.url))
  // Parse Server writes a folder of logs to where it is started.
  const cwd = mkdtempSync(join(tmpdir(), 'account-flows-bench-'))
  const child = spawn(process.execPath, [file], {
    cwd,
    env: {
      ...process.env,
      NODE_ENV: 'production',
      COMPILED: compiledCheckout(),
      PORT: String(port),
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let told = ''
  child.stderr.on('data', (chunk) => (told = `${told}${chunk}`.slice(-2_000)))
  let isReady = false
  child.stdout.on('data', (chunk) => (isReady ||= String(chunk).includes('READY')))
  await eventually(`${server} is ready`, () => isReady || hasEnded(child), 120_000)
  if (hasEnded(child)) throw new Error(`${server} ended: ${told}`)
  return {
    base: `http://127.0.0.1:${port}`,
    megabytes: () => megabytesOf(child.pid),
    async stop() {
      if (!hasEnded(child)) {
        child.kill('SIGKILL')
        await once(child, 'exit')
      }
      rmSync(cwd, { recursive: true, force: true })
    },
  }
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}

function megabytesOf(pid: number | undefined): number | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1')
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024
  } catch {
    return undefined
  }
}
