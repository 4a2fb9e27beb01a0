import { writeFile } from 'node:fs/promises'
import bcrypt from 'bcrypt'
import { expect } from 'chai'
import { openWire, postRequest, type Wire } from '../../bench/secrecy/wire.ts'
import {
  type ExampleServer,
  outboxIsQuiet,
  PASSWORD,
  putSettings,
  startExampleServer,
} from '../support/example-server.ts'
import { startMongoProxy, type MongoProxy } from '../support/mongo-proxy.ts'
import { describeWithMongo, freshDatabase, type FreshDatabase } from '../support/mongod.ts'
import { suiteFolder } from '../support/suite-folder.ts'
import { createUserAgent } from '../support/user-agent.ts'

/** All names have the length of this one, so that the page that gives them back does, too. */
const NOBODY = 'nobody-known'

const USER = {
  email_verified: true,
  password_hash: bcrypt.hashSync(PASSWORD, 4),
  password_changed_at: null,
  disabled: false,
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

describeWithMongo('A login with a wrong password (4.8) [full]', () => {
  const file = suiteFolder()
  let database: FreshDatabase
  let proxy: MongoProxy
  let server: ExampleServer
  let wire: Wire
  let page: { cookie: string; interaction: string }
  let commands: string[] = []

  before(async function () {
    this.timeout(60_000)
    database = await freshDatabase()
    proxy = await startMongoProxy(database)
    const seed = file('seed.json')
    await writeFile(seed, JSON.stringify({ users: [], clients: [CLIENT] }))
    const stored = { MONGODB_URI: proxy.uri, MAILBOX: 'true' }
    const variables = { ...stored, SEED_FILE: seed, BCRYPT_COST: '5' }
    server = await startExampleServer(variables)
    await putSettings(server, { require_email_verification: 'true' })
    for (const [username, changes] of Object.entries(users)) {
      const document = { ...USER, username, email: `${username}@example.com`, ...changes }
      await database.db.collection('users').insertOne(document, { ignoreUndefined: true })
    }
    proxy.watch({
      command({ name, collection, body }) {
        const isBackground =
          collection === undefined ||
          [
            'mail_outbox',
            'settings',
            'key_rings',
            'client_logouts',
            'password_reset_tokens',
            'invitation_tokens',
          ].includes(collection)
        if (!isBackground) commands.push(`${name} ${collection} ${shapeOf(body)}`)
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
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: CLIENT.client_id,
      redirect_uri: CLIENT.redirect_uris[0] ?? '',
      scope: 'openid',
    })
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
    const { head, body } = await wire.ask({ bytes })
    const answer = `${head}\r\n\r\n${body}`
      .replace(/^(date: ).*$/im, '$1masked')
      .replaceAll(username, NOBODY)
    // Two look-ups at once may be sent in either order.
    return { answer, commands: [...commands].sort() }
  }

  for (const [what, password] of [
    ['a wrong password', 'not the password'],
    ['no password', ''],
    ['a password of 72 bytes', 'x'.repeat(72)],
    ['a password of 73 bytes', 'x'.repeat(73)],
    ['a password with NUL', `${PASSWORD}\0`],
  ] as const) {
    it(`is answered with the page and the MongoDB commands of an unknown user, for ${what} (ENU-04, TIM-07)`, async () => {
      const mails = await database.db.collection('mail_outbox').countDocuments()
      const events = await database.db.collection('audit_events').countDocuments()
      const expected = await logIn(NOBODY, password)
      expect(expected.answer).to.match(/^HTTP\/1\.1 401 [^]*data-mode="refused"/)
      expect(expected.commands.filter((each) => each.startsWith('find users'))).to.have.lengthOf(2)
      for (const username of Object.keys(users)) {
        expect(await logIn(username, password), username).to.deep.equal(expected)
      }
      // Nobody was asked to verify anything, and nothing was blocked (ENU-04).
      expect(await database.db.collection('mail_outbox').countDocuments()).to.equal(mails)
      expect(await database.db.collection('audit_events').countDocuments()).to.equal(events)
      expect(await database.db.collection('pending_logins').countDocuments()).to.equal(0)
    })
  }

  it('of a disabled user is what the right one is, too', async () => {
    expect(await logIn('disabled-one', PASSWORD)).to.deep.equal(await logIn(NOBODY, PASSWORD))
  })

  it('does not stand in the way of the right one: mode blocked, and a mail (ENU-04)', async () => {
    const { cookie, interaction } = page
    const answer = await createUserAgent().post(
      `${server.baseUrl}/oauth2/login`,
      { interaction, username: 'unverified-1', password: PASSWORD },
      { cookie },
    )
    expect([answer.status, answer.mode]).to.deep.equal([200, 'blocked'])
    await outboxIsQuiet(database.db)
    const mails = await fetch(`${server.baseUrl}/mailbox`, {
      headers: { accept: 'application/json' },
    })
    expect(JSON.stringify(await mails.json())).to.include('unverified-1@example.com')
  })
})

const CLIENT = {
  client_id: 'app',
  client_secret: 'a-secret-of-the-tests',
  redirect_uris: ['https://app.example/callback'],
}

/** A command without the values in it. */
function shapeOf(body: object): string {
  const ofTheDriver = new Set(['lsid', 'txnNumber', '$clusterTime', '$db'])
  return JSON.stringify(
    Object.entries(body).filter(([name]) => !ofTheDriver.has(name)),
    (_, value) => (typeof value === 'string' ? 'text' : value),
  )
}
