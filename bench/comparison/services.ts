/** What is measured, each as a process of its own with its own database, and where all of them send their mails. */
import { fork } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import bcrypt from 'bcrypt'
import { eventually } from '../../test/support/eventually.ts'
import { putSettings, smtpSettings, startExampleServer } from '../../test/support/example-server.ts'
import type { Technology } from '../../test/support/harness.ts'
import { freshDatabase } from '../../test/support/mongod.ts'
import { freshPostgresql } from '../../test/support/postgresql.ts'
import { startProcess, untilUp } from '../../test/support/process.ts'
import { freePort } from '../../test/support/serve.ts'

export interface Person {
  username: string
  email: string
  isVerified: boolean
}

export interface Service {
  base: string
  pid: number
  stop(): Promise<void>
}

export type Start = (people: Person[], smtpPort: number) => Promise<Service>

const BCRYPT_COST = 10
export const OLD_HASH = bcrypt.hashSync('the password of before', BCRYPT_COST)

/** The example server, compiled. */
export function example(technology: Technology): Start {
  return async (people, smtpPort) => {
    const folder = await mkdtemp(join(tmpdir(), 'account-flows-bench-'))
    const seedFile = join(folder, 'seed.json')
    const users = people.map(({ username, email, isVerified }) => {
      return { username, email, email_verified: isVerified, password_hash: OLD_HASH }
    })
    await writeFile(seedFile, JSON.stringify({ users, clients: [] }))
    const { drop, ...where } = await storeOf(technology)
    const server = await startExampleServer({
      SEED_FILE: seedFile,
      BCRYPT_COST: String(BCRYPT_COST),
      TRUST_PROXY: '1',
      ...where,
    })
    const settings = { ...smtpSettings(smtpPort), require_email_verification: 'true' }
    await putSettings(server, settings)
    return {
      base: server.baseUrl,
      pid: server.pid,
      async stop() {
        await server.kill()
        await rm(folder, { recursive: true, force: true })
        await drop()
      },
    }
  }
}

/** The variables of the example that name a new database, and how to drop it. */
async function storeOf(technology: Technology) {
  if (technology === 'memory') return { drop: async () => {} }
  if (technology === 'mongodb') {
    const { uri, drop } = await freshDatabase('replica set')
    return { MONGODB_URI: uri, drop }
  }
  const { url, drop } = await freshPostgresql()
  return { DATABASE_URL: url, drop }
}

/**
 * A server of another maker on MongoDB, which prints READY.
 *
 * @param file - below `bench/`.
 * @param documents - what its database holds of these people, by collection.
 */
export function other(
  file: string,
  documents: (people: Person[]) => Record<string, object[]>,
): Start {
  return async (people, smtpPort) => {
    const { db, uri, drop } = await freshDatabase('replica set')
    for (const [collection, all] of Object.entries(documents(people)))
      await db.collection(collection).insertMany(all, { ordered: false })
    const port = String(await freePort())
    const env = { PORT: port, SMTP_PORT: String(smtpPort), MONGO_URL: uri, NODE_ENV: 'production' }
    const started = startProcess(
      process.execPath,
      [fileURLToPath(new URL(`../${file}`, import.meta.url))],
      // Without the last, Parse Server writes its logs into the checkout.
      { ...process.env, ...env, PARSE_SERVER_LOGS_FOLDER: 'null' },
    )
    await untilUp(started, () => started.stdout().includes('READY'))
    return {
      base: `http://127.0.0.1:${port}`,
      pid: started.process.pid ?? NaN,
      async stop() {
        started.process.kill('SIGKILL')
        await started.exited
        await drop()
      },
    }
  }
}

/** Memory in use, where the system tells it. */
export async function megabytesOf({ pid }: Service): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'latin1').catch(() => '')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024
}

export interface MailSink {
  port: number
  /** The last link to each address. */
  links: Map<string, string>
  /** How many mails arrived, and when the last one did. */
  count: number
  lastAt: number
  close(): void
}

type FromSink = { port: number; to?: undefined } | { to: string; link?: string }

export async function startMailSink(): Promise<MailSink> {
  const child = fork(fileURLToPath(new URL('../mail-sink.ts', import.meta.url)), ['told'])
  const close = () => child.disconnect()
  const sink: MailSink = { port: 0, links: new Map(), count: 0, lastAt: 0, close }
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
