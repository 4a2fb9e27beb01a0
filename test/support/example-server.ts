/**
 * The example server as a process of its own, and what people and admins ask of it.
 *
 * @module
 */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import bcrypt from 'bcrypt'
import { expect } from 'chai'
import { createBrowser, expectPage, createUserAgent, type Answer } from './user-agent.ts'
import { compiledCheckout } from './compiled-checkout.ts'
import { createAdminClient } from '../../src/admin/client.ts'
import { recordsIn, type Stored } from './records.ts'
import { eventually } from './eventually.ts'
import type { Database } from './harness.ts'
import { freePort } from './serve.ts'
import { suiteOf } from './suite.ts'
import { START_LIMIT_MS, startProcess, untilUp } from './process.ts'

const ADMIN_TOKEN = 'an-admin-token-of-the-tests-long-enough'
const DEFAULTS: Variables = {
  RESPONSE_DELAY_FLOOR_MS: '0',
  RESPONSE_DELAY_JITTER_MS: '0',
  BCRYPT_COST: '4',
  ADMIN_TOKEN,
  SIGNING_KEYS: Buffer.alloc(32, 'a key of the tests ').toString('base64url'),
}

/** `undefined`: unset, whatever the default of the tests is. */
export type Variables = Record<string, string | undefined>

export interface ExampleServer extends Awaited<ReturnType<typeof startExampleServer>> {}

/** Starts the example server, compiled, on a free port and waits for its READY line. `command` of the shell: another way to start it. */
export async function startExampleServer(variables: Variables = {}, command?: string) {
  const port = variables['PORT'] ?? String(await freePort())
  const started = spawnServer({ PORT: port, ...variables }, command)
  const { process: child, output, exited } = started
  const baseUrl = await untilUp(started, () => /^READY (.*)$/m.exec(output())?.[1])
  return {
    baseUrl,
    /** Where it listens; another one than that of the base URL when `BASE_URL` is given. */
    port: Number(port),
    pid: child.pid ?? NaN,
    /** Of `Authorization: Bearer` at the admin API. */
    adminToken:
      /^Admin token: (.*)$/m.exec(output())?.[1] ?? variables['ADMIN_TOKEN'] ?? ADMIN_TOKEN,
    /** All that it printed so far, on both streams. */
    output,
    /** The exit code. `null`: it was killed. */
    exited,
    signal: (signal: NodeJS.Signals) => void child.kill(signal),
    /** SIGTERM; answers the exit code. */
    stop() {
      child.kill('SIGTERM')
      return exited
    },
    /** SIGKILL. */
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
  }
}

/** The server of the suite that asks for it, from its first hook to its end. Variables that a hook makes are given as a function. */
export function suiteExampleServer(variables: Variables | (() => Variables) = {}): ExampleServer {
  return suiteOf<ExampleServer>(
    () => startExampleServer(typeof variables === 'function' ? variables() : variables),
    ({ kill }) => kill(),
  )
}

/** For a server that is expected to refuse to start. */
export async function refusedExampleServer(
  variables: Variables,
): Promise<{ exitCode: number | null; errors: string }> {
  const child = spawnServer(variables)
  const limit = setTimeout(() => child.process.kill('SIGKILL'), START_LIMIT_MS)
  const exitCode = await child.exited
  clearTimeout(limit)
  return { exitCode, errors: child.stderr() }
}

function spawnServer(variables: Variables, command?: string) {
  const [program, ...args] = command
    ? ['/bin/sh', '-c', command]
    : [process.execPath, join(compiledCheckout(), 'examples/server.js')]
  // Nothing else of the developer's own gets into a test.
  return startProcess(program, args, { PATH: process.env['PATH'], ...DEFAULTS, ...variables })
}

export interface Account {
  id: string
  username: string
  email: string
}

export const PASSWORD = 'a password of the tests'

/** A user of a seed file, whose address is verified unless `more` says otherwise. */
export const seedUser = (username: string, more: object = {}) => ({
  username,
  email: `${username}@example.com`,
  email_verified: true,
  ...more,
})

const passwordHash = bcrypt.hashSync(PASSWORD, 4)

/** Accounts `<name>-0`, `<name>-1` and so on, in the collection or the table of a server that has started before. */
export async function addAccounts(
  { db, pool }: Partial<Database>,
  name: string,
  count: number,
  { verified = true, mayReplaceEmail = false } = {},
): Promise<Account[]> {
  const accounts = Array.from({ length: count }, (_, index) => {
    const username = `${name}-${index}`
    return { id: randomUUID(), username, email: `${username}@example.com` }
  })
  if (count === 0) return accounts
  const rest = {
    email_verified: verified,
    password_hash: passwordHash,
    password_changed_at: null,
    disabled: false,
    may_replace_email: mayReplaceEmail,
  }
  const users = accounts.map((account) => ({ ...account, ...rest }))
  const rows = 'json_populate_recordset(NULL::users, $1)'
  await pool?.query(`INSERT INTO users SELECT * FROM ${rows}`, [JSON.stringify(users)])
  const documents = users.map(({ id, ...user }) => ({ _id: id, ...user }))
  await db?.collection<{ _id: string }>('users').insertMany(documents)
  return accounts
}

/** Changes settings by the admin API, in this process at once, in the others within two seconds. */
export async function putSettings(
  { baseUrl, adminToken }: ExampleServer,
  settings: Record<string, string>,
): Promise<void> {
  await createAdminClient(baseUrl, adminToken).putSettings(settings)
}

/** With room for tests that ask for more mails than people do. */
export function smtpSettings(port: number): Record<string, string> {
  return {
    smtp_host: '127.0.0.1',
    smtp_port: String(port),
    smtp_from: 'accounts@example.org',
    mails_per_account_per_hour: '0',
    mails_per_minute: '0',
  }
}

type Url = Pick<ExampleServer, 'baseUrl'>

interface MailboxMail {
  to: string
  text: string
  date: string
}

/** What is in the mailbox of the example, newest first. */
export async function mailsAt({ baseUrl }: Url): Promise<MailboxMail[]> {
  const response = await fetch(`${baseUrl}/mailbox`, { headers: { accept: 'application/json' } })
  return (await response.json()) as MailboxMail[]
}

/** The link of the newest mail there to this address, of one kind. */
export async function mailedLink(at: Url, to: string, path: string): Promise<string> {
  return eventually(`a mail to ${to}`, async () => {
    const mails = await mailsAt(at)
    const mail = mails.find((each) => each.to === to && each.text.includes(path))
    return mail && /https?:\/\/\S+/.exec(mail.text)?.[0]
  })
}

/** Asks for a reset link (4.2); the answer is the page that everybody gets. */
export async function forgot({ baseUrl }: Url, identifier: string): Promise<Answer> {
  const answer = await createUserAgent().post(`${baseUrl}/oauth2/forgot-password`, { identifier })
  expectPage(answer, 200, 'forgot-password', 'sent')
  return answer
}

/** Asks for another verification link (4.7); the answer is the page that everybody gets. */
export async function resend({ baseUrl }: Url, username: string): Promise<Answer> {
  const answer = await createUserAgent().post(`${baseUrl}/oauth2/resend-verification`, { username })
  expectPage(answer, 200, 'verify-email', 'sent')
  return answer
}

/** A login with the right password that waits for a verification link (4.8). */
export async function blockedLogin({ baseUrl }: Url, username: string): Promise<Answer> {
  const browser = createBrowser(baseUrl)
  const { hidden } = await browser.visit('/demo/start')
  const form = { ...hidden, username, password: PASSWORD }
  const answer = await browser.submit('/oauth2/login', form)
  expectPage(answer, 200, 'verify-email', 'blocked')
  return answer
}

/** Whether a reset link opens its form (4.3). */
export async function opensForm(link: string): Promise<boolean> {
  const { status, mode } = await createUserAgent().get(link)
  expect(`${status} ${mode}`).to.be.oneOf(['200 form', '400 invalid'])
  return status === 200
}

/** No job waits for anything any more. */
export async function outboxIsQuiet(database: Partial<Database>, withinMs?: number): Promise<void> {
  const over = new Set(['dead', 'superseded', 'over'])
  const isOver = (job: Stored) => over.has(String(job['state']))
  const isQuiet = async () => (await recordsIn(database, 'mail_outbox')).every(isOver)
  await eventually('the outbox is quiet', isQuiet, withinMs)
}
