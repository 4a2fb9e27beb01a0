import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import bcrypt from 'bcrypt'
import { createBrowser } from '../support/browser.ts'
import {
  type ExampleServer,
  smtpSettings,
  startExampleServer,
  type Variables,
} from '../support/example-server.ts'
import type { Answer } from '../support/user-agent.ts'

export interface SeededUser {
  username: string
  email: string
  email_verified: boolean
  password: string
  disabled?: boolean
}

export interface SeededServerOptions {
  /** By way of a proxy, or not. */
  uri: string
  smtpPort: number
  users: SeededUser[]
  variables?: Variables
}

/** Verified, with an address and a password made of the name. */
export function userNamed(username: string, more: Partial<SeededUser> = {}): SeededUser {
  return {
    username,
    email: `${username}@users.example`,
    email_verified: true,
    password: `${username}-password`,
    ...more,
  }
}

/** The example server on MongoDB, with users of the test, its mails over a real SMTP server, and verification required. */
export async function startSeededServer(options: SeededServerOptions): Promise<ExampleServer> {
  const folder = await mkdtemp(join(tmpdir(), 'account-flows-faults-'))
  const [seedFile, settingsFile] = [join(folder, 'seed.json'), join(folder, 'settings.json')]
  const users = options.users.map(({ password, ...user }) => ({
    ...user,
    // Whatever the cost of new hashes is.
    password_hash: bcrypt.hashSync(password, 4),
  }))
  const seed = { users, clients: [DEMO_CLIENT] }
  const settings = { ...smtpSettings(options.smtpPort), require_email_verification: 'true' }
  try {
    await writeFile(seedFile, JSON.stringify(seed))
    await writeFile(settingsFile, JSON.stringify(settings))
    return await startExampleServer({
      MONGODB_URI: options.uri,
      SEED_FILE: seedFile,
      SETTINGS_FILE: settingsFile,
      ...options.variables,
    })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

export function postForgot(server: ExampleServer, identifier: string): Promise<Answer> {
  return createBrowser(server.baseUrl).postForm('/oauth2/forgot-password', { identifier })
}

export function postReset(server: ExampleServer, token: string, password: string): Promise<Answer> {
  const fields = { token, password, confirm_password: password }
  return createBrowser(server.baseUrl).postForm('/oauth2/reset-password', fields)
}

/** From the demo client to the answer of the login, or back at the client. */
export async function signIn(
  server: ExampleServer,
  username: string,
  password: string,
): Promise<Answer> {
  const browser = createBrowser(server.baseUrl)
  const { hidden } = await browser.visit('/demo/start')
  return browser.submit('/oauth2/login', { ...hidden, username, password })
}

const DEMO_CLIENT = {
  client_id: 'demo',
  client_name: 'Demo client',
  redirect_uris: ['{base_url}/demo/callback'],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
}
