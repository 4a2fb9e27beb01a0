import type { IncomingMessage, ServerResponse } from 'node:http'
import { randomBytes } from 'node:crypto'
import bcrypt from 'bcrypt'
import type { Db } from 'mongodb'
import {
  Provider,
  interactionPolicy,
  type AdapterConstructor,
  type AdapterFactory,
  type ClientMetadata,
  type Configuration,
} from 'oidc-provider'
import {
  createAccountFlows,
  memoryStore,
  memoryUsers,
  mongoStore,
  mongoUsers,
  type PostgresPool,
  postgresStore,
  type AccountFlows,
  type AccountFlowsOptions,
  type AuditEvent,
  type User,
  type UserStore,
} from '../../src/index.ts'
import { createAdminClient } from '../../src/admin/client.ts'
import { createChangePassword } from '../../examples/hosts/change-password.ts'
import type { HostParts } from '../../examples/hosts/host-parts.ts'
import { koaHost } from '../../examples/hosts/koa.ts'
import { readForm } from '../../examples/hosts/page.ts'
import { firstPartyGrant, grantConsent } from '../../examples/server/consent.ts'
import { storageIn } from '../../examples/server/postgresql.ts'
import { postgresUsers } from '../../examples/stores/postgresql-users.ts'
import { startMailServer, type MailServerOptions } from './mail-server.ts'
import { atHand, PASSWORD, type Person, personAt, resetForm } from './person.ts'
import { describeWithMongo, freshDatabase } from './mongod.ts'
import { describeWithPostgresql, freshPostgresql } from './postgresql.ts'
import { serve } from './serve.ts'
import { suiteOf } from './suite.ts'
import { movableClock, resetTime } from './time.ts'
import { createRelyingParty } from './relying-party.ts'
import { followWithin, createUserAgent, type Answer, type UserAgent } from './user-agent.ts'
import { flowsStore } from '../../src/store/index.ts'
import { snakeCase } from '../../src/store/kind.ts'
import { adapterOn } from './kept.ts'

export { PASSWORD }

export const ADMIN_TOKEN = 'an admin token of the tests, long enough'.replaceAll(/[ ,]/g, '-')

export type Technology = 'memory' | 'mongodb' | 'postgresql'

/** MongoDB's or PostgreSQL's. */
export interface Database {
  db?: Db
  pool?: PostgresPool
  drop(): Promise<void>
}

export interface HarnessOptions {
  technology?: Technology
  /** A database of the caller's, in place of a fresh one. */
  database?: Database
  /** Of the names of the collections and tables, in MongoDB those of the users too. */
  prefix?: string
  settings?: Record<string, string>
  oauthPath?: string
  /** Path of the base URL; none by default. */
  basePath?: string
  /** What goes under `flows.adapter` in place of this adapter. */
  adapter?: (adapter: AdapterFactory) => AdapterConstructor | AdapterFactory
  clients?: ClientMetadata[]
  provider?: Configuration
  flows?: Partial<AccountFlowsOptions>
  mail?: MailServerOptions
  /** What the host does once the credentials are right; `flows.finishLogin` by default. */
  finishLogin?: FinishLogin
  /** False: the host forgot `finishLogin`, and finishes logins by itself. */
  usesHook?: boolean
  /** The suite provokes errors; otherwise `close` fails where any was logged. */
  mayLogErrors?: boolean
  /** Puts the provider and the login page on a server; a Koa host by default. */
  host?: Host
}

export type FinishLogin = (
  req: IncomingMessage,
  res: ServerResponse,
  login: { account: User; startedAt: number },
) => Promise<void>

/** `oauthPath`: where the provider is mounted, the path of the base URL included. */
export type { HostParts }

export type Listener = (req: IncomingMessage, res: ServerResponse) => unknown
export type Host = (parts: HostParts) => Promise<Listener> | Listener

export interface Harness extends Awaited<ReturnType<typeof startHarness>> {}

export const CLIENT = {
  client_id: 'app',
  client_name: 'The App',
  redirect_uris: ['https://app.example/cb'],
  token_endpoint_auth_method: 'none',
  grant_types: ['authorization_code', 'refresh_token'],
  scope: 'openid email offline_access',
} as const satisfies ClientMetadata

export const CONFIDENTIAL = {
  client_id: 'server',
  client_name: 'The Server',
  client_secret: 'the secret of the confidential client',
  redirect_uris: ['https://server.example/cb'],
  grant_types: ['authorization_code', 'refresh_token', 'client_credentials'],
  scope: 'openid email offline_access',
} as const satisfies ClientMetadata

/** Processes on one database share them. */
const SECRETS = [randomBytes(32)] as const

let running = 0

export async function startHarness(options: HarnessOptions = {}) {
  const { technology = 'memory', oauthPath = '/oauth2', usesHook = true, host = koaHost } = options
  const { basePath = '', adapter: replace } = options
  const { prefix } = options
  const database = options.database ?? (await freshDatabaseOf(technology))
  const { users: all, write } = await usersIn(database, prefix)
  const deleted = new Set<string>()
  const users = withoutDeleted(all, deleted)
  const records = options.flows?.store ?? storeIn(database, prefix)
  const store = flowsStore(records, options.flows?.clock ?? movableClock)
  const own = adapterOn(store, SECRETS, movableClock)
  const mail = await startMailServer(options.mail)

  let listener: Listener = (_req, res) => res.end()
  const { url, close: endServer } = await serve((req, res) => listener(req, res))
  const baseUrl = url + basePath
  const oauthUrl = baseUrl + oauthPath

  const errors: string[] = []
  const flows = createAccountFlows({
    baseUrl,
    oauthPath,
    secrets: SECRETS,
    store: records,
    users,
    adminToken: ADMIN_TOKEN,
    bcryptCost: 4,
    responseDelay: { floorMs: 0, jitterMs: 0 },
    initialSettings: {
      smtp_host: '127.0.0.1',
      smtp_port: String(mail.port),
      smtp_from: 'accounts@idp.example',
      require_email_verification: 'true',
      password_changed_email: 'false',
      mails_per_account_per_hour: '1000',
      ...options.settings,
    },
    log: (level, message, details) => {
      if (level === 'error') errors.push(`${message} ${JSON.stringify(details)}`)
    },
    clock: movableClock,
    ...options.flows,
  })
  const events: AuditEvent[] = []
  flows.events.on('audit', (event) => events.push(event))
  const provider = new Provider(oauthUrl, {
    adapter: flows.adapter(replace?.(own.of)),
    clients: options.clients ?? [CLIENT, CONFIDENTIAL],
    interactions: {
      url: (_ctx, { uid }) => `${basePath}${oauthPath}/login?interaction=${uid}`,
      policy: flows.policy(interactionPolicy.base()),
    },
    cookies: { keys: ['a cookie key of the tests'] },
    features: {
      devInteractions: { enabled: false },
      introspection: { enabled: true },
      deviceFlow: { enabled: true },
      clientCredentials: { enabled: true },
    },
    claims: { openid: ['sub'], email: ['email', 'email_verified'] },
    scopes: ['openid', 'offline_access', 'email'],
    async findAccount(_ctx, sub) {
      const user = await users.findById(sub)
      if (!user || user.disabled) return undefined
      return {
        accountId: sub,
        claims: () => ({ sub, email: user.email, email_verified: user.emailVerified }),
      }
    },
    loadExistingGrant: firstPartyGrant,
    ...options.provider,
  })
  flows.attach(provider)
  await flows.start()
  running += 1

  const { finishLogin = flows.finishLogin } = options
  const login = hostLogin(flows, provider, users, usesHook ? finishLogin : undefined)
  const changePassword = createChangePassword({ provider, flows, users, bcryptCost: 4 })
  listener = await host({ provider, flows, oauthPath: basePath + oauthPath, login, changePassword })
  const app = options.clients?.find(({ client_id }) => client_id === CLIENT.client_id)
  const party = await createRelyingParty(oauthUrl, {
    clientId: CLIENT.client_id,
    redirectUri: app?.redirect_uris?.[0] ?? CLIENT.redirect_uris[0],
  })
  const anyone = createUserAgent()
  const passwordHash = await bcrypt.hash(PASSWORD, 4)
  let added = 0

  const harness = {
    baseUrl,
    oauthUrl,
    flows,
    provider,
    store,
    records,
    users,
    /** Where there is one, for another harness that has it too. */
    database: database && { ...database, drop: async () => {} },
    /** MongoDB's. */
    db: database?.db,
    mail,
    events,
    party,

    async addUser(user: Partial<User> & { username: string }): Promise<Person> {
      added += 1
      const complete: User = {
        id: `u${added}`,
        email: `${user.username}@users.example`,
        emailVerified: true,
        passwordHash,
        disabled: false,
        ...user,
      }
      await write(complete)
      return personAt(harness, complete)
    },

    async changeUser(user: User, changes: Partial<User>) {
      await write({ ...((await users.findById(user.id)) ?? user), ...changes })
    },

    /** What the host itself does with an account that is left. */
    async deleteUser({ id }: User) {
      deleted.add(id)
    },

    async put(settings: Record<string, string>) {
      await createAdminClient(baseUrl, ADMIN_TOKEN).putSettings(settings)
    },

    forgot: (identifier: string, parameters: Record<string, string> = {}, headers = {}) =>
      anyone.post(`${oauthUrl}/forgot-password`, { identifier, ...parameters }, headers),

    /** Asks by name for another verification link. */
    resend: (username: string, headers = {}) =>
      anyone.post(`${oauthUrl}/resend-verification`, { username }, headers),

    reset: (...typed: Parameters<typeof resetForm>) =>
      anyone.post(`${oauthUrl}/reset-password`, resetForm(...typed)),

    /** Opens the authorization request and posts the credentials; answers the login POST. */
    async login(agent: UserAgent, url: URL, username: string, password = PASSWORD) {
      const page = await followWithin(agent, oauthUrl, await agent.get(url))
      return agent.post(`${oauthUrl}/login`, { username, password, ...page.hidden })
    },

    follow: (agent: UserAgent, answer: Answer) => followWithin(agent, oauthUrl, answer),

    async close() {
      await flows.stop({ withinMs: 2_000 })
      await endServer()
      await mail.close()
      await database?.drop()
      running -= 1
      if (running === 0) resetTime()
      if (errors.length > 0 && !options.mayLogErrors) throw new Error(errors.join('\n'))
    },
  }
  const ready = Object.assign(harness, atHand(harness))
  return Object.assign(ready, {
    /** The session of this browser, as the provider keeps it. */
    sessionOf: (agent: UserAgent) => provider.Session.find(ready.sessionId(agent) ?? ''),
  })
}

/** A new, empty one. `undefined`: none is needed. */
export async function freshDatabaseOf(technology: Technology): Promise<Database | undefined> {
  if (technology === 'mongodb') return freshDatabase()
  return technology === 'postgresql' ? freshPostgresql() : undefined
}

/** With a clock that moves, where it is in memory. */
export function storeIn({ db, pool }: Partial<Database> = {}, prefix?: string) {
  if (db) return mongoStore(db, { prefix })
  return pool ? postgresStore(pool, { prefix }) : memoryStore(movableClock)
}

/** What PostgreSQL has of a user. */
const WRITTEN = [
  'id',
  'username',
  'email',
  'emailVerified',
  'passwordHash',
  'disabled',
  'mayReplaceEmail',
]

/** Those of the host, and how it adds or changes one. */
async function usersIn(
  { db, pool }: Partial<Database> = {},
  prefix = '',
): Promise<{ users: UserStore; write(user: User): Promise<unknown> }> {
  if (db) {
    const users = db.collection<{ _id: string }>(`${prefix}users`)
    return {
      users: mongoUsers(users),
      write({ id, ...user }) {
        const fields = Object.entries(user).map(([name, value]) => [snakeCase(name), value])
        return users.updateOne({ _id: id }, { $set: Object.fromEntries(fields) }, { upsert: true })
      },
    }
  }
  // The recipe has one table: whoever shares the database by a prefix has users elsewhere.
  if (!pool || prefix) {
    const users = memoryUsers()
    return { users, write: async (user) => users.add(user) }
  }
  await storageIn(pool, [SECRETS[0].toString('base64url')])
  const columns = `(${WRITTEN.map(snakeCase).join(', ')})`
  const values = `(${WRITTEN.map((_, at) => `$${at + 1}`).join(', ')})`
  const insert = `INSERT INTO users ${columns} VALUES ${values}`
  const upsert = `${insert} ON CONFLICT (id) DO UPDATE SET ${columns} = ${values}`
  return {
    users: postgresUsers(pool),
    write: (user) =>
      pool.query(
        upsert,
        WRITTEN.map((name) => Reflect.get(user, name)),
      ),
  }
}

function withoutDeleted(users: UserStore, deleted: ReadonlySet<string>): UserStore {
  const { findByUsernameInAnyCase: inAnyCase, findByEmail: byEmail } = users
  const isLeft = ({ id }: User) => !deleted.has(id)
  const ifLeft = (user: User | undefined) => (user && isLeft(user) ? user : undefined)
  const left = (find: UserStore['findByVerifiedEmail']) => async (name: string) =>
    (await find(name)).filter(isLeft)
  return {
    ...users,
    findById: async (id) => ifLeft(await users.findById(id)),
    findByUsername: async (name) => ifLeft(await users.findByUsername(name)),
    findByVerifiedEmail: left(users.findByVerifiedEmail),
    ...(inAnyCase && { findByUsernameInAnyCase: left(inAnyCase) }),
    ...(byEmail && { findByEmail: left(byEmail) }),
  }
}

function hostLogin(
  flows: AccountFlows,
  provider: Provider,
  users: UserStore,
  finishLogin: FinishLogin | undefined,
) {
  return async (req: IncomingMessage, res: ServerResponse) => {
    res.setHeader('content-type', 'text/html; charset=utf-8')
    if (req.method !== 'POST') {
      const { prompt } = await provider.interactionDetails(req, res)
      res.statusCode = 200
      res.end(`<main data-page="login" data-mode="${prompt.name}"></main>`)
      return
    }
    const startedAt = flows.loginStarted()
    const form = (await readForm(req)) ?? new URLSearchParams()
    if (form.get('consent') !== null) return giveConsent(provider, req, res)
    const user = await users.findByUsername(form.get('username') ?? '')
    const isRight = await bcrypt.compare(form.get('password') ?? '', user?.passwordHash ?? '')
    if (!user || !isRight || user.disabled) {
      res.statusCode = 401
      res.end('<main data-page="login" data-mode="wrong"></main>')
      return
    }
    if (finishLogin) return finishLogin(req, res, { account: user, startedAt })
    await provider.interactionFinished(req, res, { login: { accountId: user.id } })
  }
}

async function giveConsent(provider: Provider, req: IncomingMessage, res: ServerResponse) {
  const interaction = await provider.interactionDetails(req, res)
  const grantId = await grantConsent(provider, interaction)
  await provider.interactionFinished(req, res, { consent: { grantId } })
}

/** The harness of the suite that asks for it, from its first hook to its end. Options that a hook makes, or that are waited for, are given as a function. */
export function suiteHarness(
  options: HarnessOptions | (() => HarnessOptions | Promise<HarnessOptions>) = {},
): Harness {
  return suiteOf<Harness>(
    async () => startHarness(typeof options === 'function' ? await options() : options),
    ({ close }) => close(),
  )
}

/** The same suite on the embedded store and, in the full tier, on MongoDB and PostgreSQL. */
export function onEachStore(title: string, body: (technology: Technology) => void): void {
  describe(`${title}, in memory`, () => body('memory'))
  describeWithMongo(`${title}, on MongoDB [full]`, () => body('mongodb'))
  describeWithPostgresql(`${title}, on PostgreSQL [full]`, () => body('postgresql'))
}
