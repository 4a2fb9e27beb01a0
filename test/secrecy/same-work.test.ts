import { writeFile } from 'node:fs/promises'
import bcrypt from 'bcrypt'
import { expect } from 'chai'
import { MongoClient, type CommandStartedEvent } from 'mongodb'
import {
  getRequest,
  openWire,
  postRequest,
  type Wire,
  type WireAnswer,
} from '../../bench/secrecy/wire.ts'
import { newId } from '../../src/crypto/token.ts'
import {
  outboxIsQuiet,
  PASSWORD,
  putSettings,
  startExampleServer,
  type ExampleServer,
} from '../support/example-server.ts'
import { CLIENT, startHarness, type Harness } from '../support/harness.ts'
import { startMongoProxy, type MongoProxy } from '../support/mongo-proxy.ts'
import { describeWithMongo, freshDatabase, type FreshDatabase } from '../support/mongod.ts'
import { tokenOf } from '../support/person.ts'
import { suiteFolder } from '../support/folders.ts'
import { createUserAgent } from '../support/user-agent.ts'

interface Exchange {
  /** All of the answer, byte for byte; the date is masked. */
  answer: string
  /** What the request asked of MongoDB, values by their types. */
  commands: string[]
}

const FORGOT = { path: 'forgot-password', field: 'identifier' }
const RESEND = { path: 'resend-verification', field: 'username' }
type Form = typeof FORGOT
const TO_MEASURE_BY = 'nobody-at-all'

const identifiers: Record<string, string> = {
  'a verified user': 'verified',
  'a verified address': 'verified@users.example',
  'a verified address in other case': 'LETTERED@Users.example',
  'an unverified user': 'unverified',
  'an unverified address': 'unverified@users.example',
  'a disabled user': 'disabled',
  'the address of a disabled user': 'disabled@users.example',
  'a user without an address': 'addressless',
  'a user without a password': 'passwordless',
  'a user who may choose a password': 'choosing',
  'a user who signs in elsewhere': 'elsewhere',
  'an address of two users': 'TWIN@users.example',
  'a user who asked more often than is answered': 'throttled',
  'an unknown address': 'nobody@elsewhere.example',
  // A cooldown is of the name: nobody here is asked for twice.
  'a known name with a space': ' lettered',
  'a name of one letter': 'x',
  'a name of 254 characters': 'n'.repeat(254),
  'a name of 255 characters': 'n'.repeat(255),
  'a name of 10,000 characters': 'n'.repeat(10_000),
  'a name that is not ASCII': 'жанна-дʼАрк-😀',
  'a known name that is not ASCII': 'Ünver',
  'an operator of the database': '{"$ne":null}',
  markup: '"><b>',
}

const { client_id } = CLIENT
const EVIL = 'https://evil.example/'
const parameters: Record<string, Record<string, string>> = {
  'nothing carried': {},
  'genuine parameters [full]': { client_id, redirect_uri: CLIENT.redirect_uris[0] },
  'a foreign redirect_uri [full]': { client_id, redirect_uri: EVIL },
  'an unknown client [full]': { client_id: 'nobody', redirect_uri: EVIL, state: 'x' },
}

/** One process answers and another one works on the outbox, so that what is seen of the first is the request path alone. */
describeWithMongo('Nobody learns who has an account (4.2, 4.7)', () => {
  let database: FreshDatabase
  let client: MongoClient
  let web: Harness
  let worker: Harness
  let wire: Wire
  let commands: string[] = []

  before(async () => {
    database = await freshDatabase()
    client = await MongoClient.connect(database.uri, { monitorCommands: true })
    client.on('commandStarted', (event) => {
      if (!isBackground(event)) commands.push(shapeOf(event.commandName, event.command))
    })
    const drop = async () => {}
    const mail = { answer: () => (isRefused ? 'refuse' : 'take') } as const
    web = await startHarness({
      database: { db: client.db(), drop },
      mail,
      settings: { mails_per_account_per_hour: '14' },
      flows: { beforeForgotPassword: ({ fields }) => (fields.has('denied') ? 'deny' : 'allow') },
      mayLogErrors: true,
    })
    await web.flows.stop({ withinMs: 2_000 })
    await web.flows.start({ workers: false })
    worker = await startHarness({ database: { db: database.db, drop }, mayLogErrors: true })
    for (const user of [
      { username: 'verified' },
      { username: 'lettered' },
      { username: 'unverified', emailVerified: false },
      { username: 'disabled', disabled: true },
      { username: 'addressless', email: undefined },
      { username: 'passwordless', passwordHash: undefined },
      { username: 'choosing', passwordHash: undefined, mayChoosePassword: true },
      { username: 'elsewhere', passwordHash: undefined, signsInElsewhere: 'Google' },
      { username: 'twin1', email: 'Twin@users.example' },
      { username: 'twin2', email: 'twin@users.example' },
      { username: 'Ünver', email: 'uenver@users.example' },
    ])
      await web.addUser(user)
    const throttled = await web.addUser({ username: 'throttled', emailVerified: false })
    wire = await openWire(new URL(web.oauthUrl))
    for (const form of [FORGOT, RESEND]) {
      for (let i = 0; i < 15; i += 1) await send(form, 'throttled')
    }
    await outboxIsQuiet(database)
    for (const kind of ['password_reset', 'email_verification']) {
      const event = worker.events.find(
        ({ type, reason }) => type === `${kind}_requested` && reason === 'throttled',
      )
      expect(event, `a throttled ${kind}`).to.include({ accountId: throttled.id })
    }
  })

  after(async () => {
    wire?.close()
    await worker?.close()
    await web?.close()
    await client?.close()
    await database?.drop()
  })

  let isRefused = false

  async function send(
    { path, field }: Form,
    identifier: string,
    more: Record<string, string> = {},
  ): Promise<Exchange> {
    commands = []
    const url = new URL(`${web.oauthUrl}/${path}`)
    const bytes = postRequest(url, { [field]: identifier, ...more })
    const answer = await wire.ask({ bytes })
    return { answer: bytesOf(answer), commands: [...commands] }
  }

  /** Every class of identifiers against one that is unknown. */
  async function expectAllAlike(form: Form, more: Record<string, string> = {}) {
    const expected = await send(form, TO_MEASURE_BY, more)
    // Only now: a connection that was idle for longer has been closed, and this request opened another.
    const port = wire.localPort()
    expect(expected.answer).to.match(/^HTTP\/1\.1 200 OK\r\n[^]*data-mode="sent"/)
    const toOutbox = expected.commands.filter((command) => command.includes('mail_outbox'))
    expect(toOutbox).to.have.lengthOf(1)
    const elsewhere = /users|password_reset_tokens|email_verification_tokens|pending_logins|audit/
    expect(expected.commands.filter((command) => elsewhere.test(command))).to.deep.equal([])
    for (const [what, identifier] of Object.entries(identifiers)) {
      expect(await send(form, identifier, more), what).to.deep.equal(expected)
    }
    // Nobody's connection was treated in another way.
    expect(wire.localPort()).to.equal(port)
    return expected
  }

  for (const form of [FORGOT, RESEND]) {
    describe(`by POST ${form.path}: the same bytes and the same MongoDB commands for each class (ENU-01, TIM-01, TIM-05, TIM-12, FLT-11)`, () => {
      for (const [what, more] of Object.entries(parameters)) {
        it(`with ${what} (ENU-01, ENU-02, ENU-07)`, () => expectAllAlike(form, more))
      }

      it('with the id of a form, once and again, and again by another name (ENU-01)', async () => {
        const form_id = newId()
        const first = await expectAllAlike(form, { form_id })
        await outboxIsQuiet(database)
        expect(await expectAllAlike(form, { form_id })).to.deep.equal(first)
        const { commands } = await send(form, 'verified', { form_id: newId() })
        expect(commands).to.deep.equal(first.commands)
      })

      it('with a check of the host that denies it: the page of those who are allowed, and no job (ENU-01)', async () => {
        const more = { denied: 'yes' }
        const { answer } = await send(form, TO_MEASURE_BY)
        const expected = await send(form, TO_MEASURE_BY, more)
        expect(expected.answer).to.equal(answer)
        expect(expected.commands.join()).not.to.match(/mail_outbox|users/)
        for (const [what, identifier] of Object.entries(identifiers)) {
          expect(await send(form, identifier, more), what).to.deep.equal(expected)
        }
      })

      it('and echoes nothing of what was typed (ENU-03)', async () => {
        const { answer } = await expectAllAlike(form)
        expect(answer).not.to.match(/verified@|VERIFIED|disabled|nobody|жанна|evil/)
        expect(answer).not.to.match(/set-cookie|x-ratelimit|retry-after/i)
      })

      const refuses = (is: boolean) => () => (isRefused = is)
      const configure = (smtp_host: string) => () => web.put({ smtp_host })
      const [stop, go] = [() => worker.flows.stop({ withinMs: 2_000 }), () => worker.flows.start()]
      const states: [what: string, begin: () => unknown, end: () => unknown][] = [
        ['the mail server refuses every recipient', refuses(true), refuses(false)],
        ['the mail server does not speak', () => web.mail.fallSilent(), () => web.mail.speak()],
        ['SMTP is not configured', configure(''), configure('127.0.0.1')],
        ['nobody works on the outbox', stop, go],
      ]
      for (const [what, begin, end] of states) {
        it(`while ${what} (ENU-05) [full]`, async () => {
          const usual = await send(form, TO_MEASURE_BY)
          await begin()
          expect(await expectAllAlike(form)).to.deep.equal(usual)
          // And again, when the first of them have failed.
          expect(await expectAllAlike(form)).to.deep.equal(usual)
          await end()
        })
      }

      it('with a cooldown set, which is counted alike for each of them, and counted down alike [full]', async () => {
        const usual = await send(form, TO_MEASURE_BY)
        await web.put({ resend_cooldown: '1h' })
        const first = await expectAllAlike(form)
        expect(first.answer).to.include('data-seconds="3600"')
        expect(first.commands).to.have.lengthOf(usual.commands.length + 1)
        // A window that this process knows is read, and no longer begun.
        const again = await send(form, TO_MEASURE_BY)
        expect(again.commands).to.have.lengthOf(first.commands.length)
        for (const [what, identifier] of Object.entries(identifiers)) {
          const { commands } = await send(form, identifier)
          expect(commands, what).to.deep.equal(again.commands)
        }
        await web.put({ resend_cooldown: '0s' })
        expect(await send(form, TO_MEASURE_BY)).to.deep.equal(usual)
      })
    })
  }

  it('nor anything about a link, for a reset token of which all but the last character is right (TIM-08)', async () => {
    const bea = await web.addUser({ username: 'bea' })
    await send(FORGOT, 'bea')
    const { link } = await web.mail.mailTo(bea.email ?? '')
    const open = async (token: string) => {
      commands = []
      const bytes = getRequest(new URL(`${web.oauthUrl}/reset-password?token=${token}`))
      return { answer: bytesOf(await wire.ask({ bytes })), commands: [...commands] }
    }
    const token = tokenOf(link)
    const wrong = await open('x'.repeat(43))
    expect(wrong.answer).to.match(/^HTTP\/1\.1 400 /)
    expect(wrong.commands).to.have.lengthOf.at.least(1)
    for (const last of [...'AEIMQUYcgkosw048'].filter((letter) => !token.endsWith(letter))) {
      expect(await open(token.slice(0, 42) + last)).to.deep.equal(wrong)
    }
    expect((await open(token)).answer).to.match(/^HTTP\/1\.1 200 /)
  })
})

describeWithMongo('A login with a wrong password (4.8) [full]', () => {
  /** All names have the length of this one, so that the page that gives them back does, too. */
  const NOBODY = 'nobody-known'
  const APP = {
    client_id: 'app',
    client_secret: 'a-secret-of-the-tests',
    redirect_uris: ['https://app.example/callback'],
  }
  const users: Record<string, object> = {
    'verified-one': {},
    'unverified-1': { email_verified: false },
    'disabled-one': { disabled: true },
    'no-address-1': { email: undefined },
    'no-password1': { password_hash: undefined },
    'empty-hash-1': { password_hash: '' },
    'odd-hash-one': { password_hash: 'f'.repeat(64) },
    'dearer-hash1': { password_hash: bcrypt.hashSync(PASSWORD, 6) },
    'cheap-hash-1': { password_hash: bcrypt.hashSync(PASSWORD, 4) },
  }
  /** What is asked of these is the work of others. */
  const BACKGROUND =
    /^(mail_outbox|settings|key_rings|client_logouts|password_reset_tokens|invitation_tokens)$/

  const file = suiteFolder()
  let database: FreshDatabase
  let proxy: MongoProxy
  let server: ExampleServer
  let wire: Wire
  let page: { cookie: string; interaction: string }
  let commands: string[] = []

  before(async () => {
    database = await freshDatabase()
    proxy = await startMongoProxy(database)
    const seed = file('seed.json')
    await writeFile(seed, JSON.stringify({ users: [], clients: [APP] }))
    const stored = { MONGODB_URI: proxy.uri, MAILBOX: 'true' }
    server = await startExampleServer({ ...stored, SEED_FILE: seed, BCRYPT_COST: '5' })
    await putSettings(server, { require_email_verification: 'true' })
    const usual = { email_verified: true, password_changed_at: null, disabled: false }
    const user = { ...usual, password_hash: bcrypt.hashSync(PASSWORD, 4) }
    for (const [username, changes] of Object.entries(users)) {
      const document = { ...user, username, email: `${username}@example.com`, ...changes }
      await database.db.collection('users').insertOne(document, { ignoreUndefined: true })
    }
    proxy.watch({
      command({ name, collection, body }) {
        if (collection !== undefined && !BACKGROUND.test(collection))
          commands.push(shapeOf(name, body))
      },
    })
    wire = await openWire(new URL(server.baseUrl))
    page = await loginPage()
  })

  after(async () => {
    wire?.close()
    await server?.kill()
    await proxy?.close()
    await database?.drop()
  })

  async function loginPage() {
    const agent = createUserAgent()
    const app = { client_id: APP.client_id, redirect_uri: APP.redirect_uris[0] ?? '' }
    const query = new URLSearchParams({ response_type: 'code', scope: 'openid', ...app })
    const { location = '' } = await agent.get(`${server.baseUrl}/oauth2/auth?${query}`)
    const { hidden } = await agent.get(location)
    const cookie = agent.cookiesFor(`${server.baseUrl}/oauth2/login`)
    return { cookie, interaction: hidden['interaction'] ?? '' }
  }

  async function logIn(username: string, password: string) {
    const { cookie, interaction } = page
    const url = new URL(`${server.baseUrl}/oauth2/login`)
    commands = []
    const bytes = postRequest(url, { interaction, username, password }, cookie)
    const answer = bytesOf(await wire.ask({ bytes })).replaceAll(username, NOBODY)
    // Two look-ups at once may be sent in either order.
    return { answer, commands: [...commands].sort() }
  }

  const WRITTEN = ['mail_outbox', 'audit_events', 'pending_logins']
  const counts = () =>
    Promise.all(WRITTEN.map((name) => database.db.collection(name).countDocuments()))

  for (const [what, password] of [
    ['a wrong password', 'not the password'],
    ['no password', ''],
    ['a password of 72 bytes', 'x'.repeat(72)],
    ['a password of 73 bytes', 'x'.repeat(73)],
    ['a password with NUL', `${PASSWORD}\0`],
  ] as const) {
    it(`is answered with the page and the MongoDB commands of an unknown user, for ${what} (ENU-04, TIM-07)`, async () => {
      const before = await counts()
      const expected = await logIn(NOBODY, password)
      expect(expected.answer).to.match(/^HTTP\/1\.1 401 [^]*data-mode="refused"/)
      expect(expected.commands.filter((each) => each.startsWith('find users'))).to.have.lengthOf(2)
      for (const username of Object.keys(users)) {
        expect(await logIn(username, password), username).to.deep.equal(expected)
      }
      // Nobody was asked to verify anything, and nothing was blocked (ENU-04).
      expect(await counts()).to.deep.equal(before)
    })
  }

  it('does not stand in the way of the right one: mode blocked, and a mail; of a disabled user that is wrong, too (ENU-04)', async () => {
    expect(await logIn('disabled-one', PASSWORD)).to.deep.equal(await logIn(NOBODY, PASSWORD))
    const { cookie, interaction } = page
    const form = { interaction, username: 'unverified-1', password: PASSWORD }
    const login = `${server.baseUrl}/oauth2/login`
    const answer = await createUserAgent().post(login, form, { cookie })
    expect([answer.status, answer.mode]).to.deep.equal([200, 'blocked'])
    await outboxIsQuiet(database)
    const headers = { accept: 'application/json' }
    const mails = await fetch(`${server.baseUrl}/mailbox`, { headers })
    expect(JSON.stringify(await mails.json())).to.include('unverified-1@example.com')
  })
})

function bytesOf({ head, body }: Pick<WireAnswer, 'head' | 'body'>): string {
  return `${head}\r\n\r\n${body}`.replace(/^(date: ).*$/im, '$1masked')
}

// Looks for a newer version of the settings, notes of the keys, and signs of life.
function isBackground({ commandName, command }: CommandStartedEvent): boolean {
  const isAlive = ['hello', 'ping', 'endSessions'].includes(commandName)
  return isAlive || command['find'] === 'settings' || command[commandName] === 'key_rings'
}

/** A command without the values in it. */
function shapeOf(name: string, body: object): string {
  const ofTheDriver = new Set(['lsid', 'txnNumber', '$clusterTime', '$db'])
  const asked = Object.entries(body).filter(([each]) => !ofTheDriver.has(each))
  return `${name} ${Reflect.get(body, name)} ${JSON.stringify(typesIn(asked))}`
}

function typesIn(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(typesIn)
  const isPlain =
    typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
  if (isPlain) return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, typesIn(v)]))
  return value === null ? 'null' : typeof value === 'object' ? value.constructor.name : typeof value
}
