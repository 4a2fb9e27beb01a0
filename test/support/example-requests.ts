/**
 * What people and admins ask of running example servers, and the accounts that they ask for.
 *
 * @module
 */
import { randomUUID } from 'node:crypto'
import bcrypt from 'bcrypt'
import { expect } from 'chai'
import type { Db } from 'mongodb'
import { createBrowser } from './browser.ts'
import type { ExampleServer } from './example-server.ts'
import { eventually } from './eventually.ts'
import { createUserAgent, type Answer } from './user-agent.ts'

export interface Account {
  id: string
  username: string
  email: string
}

export const PASSWORD = 'a password of the tests'

const passwordHash = bcrypt.hashSync(PASSWORD, 4)

/** Accounts `<name>-0`, `<name>-1` and so on, in the collection of a server that has started before. */
export async function addAccounts(
  db: Db,
  name: string,
  count: number,
  { verified = true } = {},
): Promise<Account[]> {
  const accounts = Array.from({ length: count }, (_, index) => ({
    id: randomUUID(),
    username: `${name}-${index}`,
    email: `${name}-${index}@example.com`,
  }))
  if (count === 0) return accounts
  await db.collection<{ _id: string }>('users').insertMany(
    accounts.map(({ id, ...account }) => ({
      _id: id,
      ...account,
      email_verified: verified,
      password_hash: passwordHash,
      password_changed_at: null,
      disabled: false,
    })),
  )
  return accounts
}

/** Changes settings by the admin API, in this process at once, in the others within two seconds. */
export async function putSettings(
  { baseUrl, adminToken }: ExampleServer,
  settings: Record<string, string>,
): Promise<void> {
  const answer = await fetch(`${baseUrl}/admin/api/settings`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' },
    body: JSON.stringify(settings),
  })
  expect(answer.status, await answer.text()).to.equal(200)
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

/** Asks for a reset link (4.2); the answer is the page that everybody gets. */
export async function forgot({ baseUrl }: ExampleServer, identifier: string): Promise<Answer> {
  const url = `${baseUrl}/oauth2/forgot-password`
  const answer = await createUserAgent().post(url, { identifier })
  expect([answer.status, answer.page, answer.mode]).to.deep.equal([200, 'forgot-password', 'sent'])
  return answer
}

/** Asks for another verification link (4.7); the answer is the page that everybody gets. */
export async function resend({ baseUrl }: ExampleServer, username: string): Promise<Answer> {
  const url = `${baseUrl}/oauth2/resend-verification`
  const answer = await createUserAgent().post(url, { username })
  expect([answer.status, answer.page, answer.mode]).to.deep.equal([200, 'verify-email', 'sent'])
  return answer
}

/** A login with the right password that waits for a verification link (4.8). */
export async function blockedLogin({ baseUrl }: ExampleServer, username: string): Promise<Answer> {
  const browser = createBrowser(baseUrl)
  const page = await browser.visit('/demo/start')
  expect(page.page).to.equal('login')
  const form = { ...page.hidden, username, password: PASSWORD }
  const answer = await browser.submit('/oauth2/login', form)
  expect([answer.status, answer.page, answer.mode]).to.deep.equal([200, 'verify-email', 'blocked'])
  return answer
}

/** Whether a reset link opens its form (4.3). */
export async function opensForm(link: string): Promise<boolean> {
  const { status, mode } = await createUserAgent().get(link)
  expect([status, mode]).to.be.deep.oneOf([
    [200, 'form'],
    [400, 'invalid'],
  ])
  return status === 200
}

/** Sets a new password with a reset link (4.4). */
export async function resetPassword(link: string, password: string): Promise<void> {
  const url = new URL(link)
  const token = url.searchParams.get('token') ?? ''
  url.search = ''
  const form = { token, password, confirm_password: password }
  const answer = await createUserAgent().post(url, form)
  expect([answer.status, answer.mode]).to.deep.equal([200, 'done'])
}

/** No job waits for anything any more. */
export async function outboxIsQuiet(db: Db, withinMs?: number): Promise<void> {
  const open = { state: { $nin: ['dead', 'superseded', 'over'] } }
  await eventually(
    'the outbox is quiet',
    async () => (await db.collection('mail_outbox').countDocuments(open)) === 0,
    withinMs,
  )
}
