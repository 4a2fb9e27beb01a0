import { setTimeout as sleep } from 'node:timers/promises'
import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { Binary, type Collection, type Db } from 'mongodb'
import {
  type Account,
  addAccounts,
  blockedLogin,
  type ExampleServer,
  forgot,
  outboxIsQuiet,
  PASSWORD,
  resend,
} from '../support/example-server.ts'
import { eventually } from '../support/eventually.ts'
import { steadyLoad } from './load.ts'
import { logoutClient, signInAt, type LogoutClient } from '../oidc/real-clients.ts'
import type { MailAnswer } from '../support/mail-server.ts'
import { describeWithReplicaSet } from '../support/mongod.ts'
import { sha256 } from '../support/observe.ts'
import { createUserAgent, expectPage } from '../support/user-agent.ts'
import { postReset } from './people.ts'
import { scaled, suiteService } from './servers.ts'

const PER_SECOND = scaled({ full: 5, short: 10 })
/** A third of the requests are for resets, and a third for each way to a verification link. */
const REQUESTS = scaled({ full: 300, short: 30 })
const ACCOUNTS = scaled({ full: 60, short: 8 })
const AT_CLIENT = scaled({ full: 10, short: 2 })
const UNHAPPY: MailAnswer[] = ['defer after data', 'drop', 'defer', 'drop', 'defer after data']
const LONGEST_BETWEEN_DUMPS_MS = 400

describeWithReplicaSet('No secret at rest, nor in the oplog', () => {
  const login = { username: 'mailer', password: randomBytes(24).toString('base64url') }
  const servers: ExampleServer[] = []
  let client: LogoutClient
  let isHappy = false
  let stopDumps: () => Promise<unknown> = async () => {}

  let asked = 0
  function answer(recipient: string): MailAnswer {
    if (recipient.startsWith('refused-')) return 'refuse'
    asked += 1
    return isHappy ? 'take' : (UNHAPPY[asked % UNHAPPY.length] ?? 'defer')
  }

  const at = suiteService(async () => {
    client = await logoutClient('openid-client')
    const settings = {
      smtp_username: login.username,
      smtp_password: login.password,
      require_email_verification: 'true',
    }
    const clients = [client.metadata]
    const mail = { login, answer }
    return { topology: 'replica set', settings, clients, mail, isDirect: true }
  })

  before(async () => {
    await client.start(at.oauthUrl)
    servers.push(at.server)
    // One issuer: it may be the one that tells the client.
    servers.push(await at.another())
  })

  afterEach(() => stopDumps())

  after(() => client?.stop())

  async function resets(link: string) {
    const answer = await postReset(at, link, 'a new password of the tests')
    expectPage(answer, 200, 'reset-password', 'done')
  }

  async function dumped() {
    const { db, client: connected } = at.database
    const dumps = await startDumps(db, connected.db('local'))
    stopDumps = dumps.stop
    return dumps
  }

  it('opens a link or the SMTP server, or signs out at a client, while they fail and when they answer', async () => {
    const { database } = at
    const verified = await addAccounts(database, 'verified', ACCOUNTS)
    const unverified = await addAccounts(database, 'unverified', ACCOUNTS, { verified: false })
    const [refused] = await addAccounts(database, 'refused', 1)
    const atClient = await addAccounts(database, 'at-client', AT_CLIENT)
    for (const { username } of atClient) {
      await signInAt(client, createUserAgent(), { username, password: PASSWORD })
    }
    const dumps = await dumped()

    await steadyLoad({ perSecond: PER_SECOND, count: REQUESTS }, async (index) => {
      const server = servers[index % servers.length] ?? at
      const number = Math.floor(index / 3) % ACCOUNTS
      const username = (index % 3 === 0 ? verified : unverified)[number]?.username ?? ''
      if (index % 3 === 0) return forgot(server, username)
      if (index % 3 === 1) return resend(server, username)
      // The demo client is registered with the address of the process that started first.
      return blockedLogin(at, username)
    })
    await forgot(at, refused?.username ?? '')
    await eventually('mails fail in every way', () =>
      (['defer', 'defer after data', 'drop', 'refuse'] as const).every(
        (answer) => at.mail.answered[answer] > 0,
      ),
    )
    isHappy = true
    await eventually(
      'everybody gets a mail',
      () =>
        [...verified, ...unverified].every(({ email }) =>
          at.mail.mails.some(({ to }) => to.includes(email)),
        ),
      120_000,
    )
    await outboxIsQuiet(database, 120_000)
    const tokensTaken = at.mail.mails.map(
      ({ link }) => new URL(link).searchParams.get('token') ?? '',
    )
    // A reset is under way for a moment, and a token that is used stays in the database.
    const link = at.mail.mails.findLast(({ kind }) => kind === 'password_reset')?.link ?? ''
    await resets(link)
    await signOutAtClient(atClient)

    await dumps.stop()
    const output = servers.map((each) => each.output()).join('\n')
    const tokens = at.mail.tokensSeen()
    console.log(
      `no secret at rest, nor in the oplog: ${tokens.size} tokens seen by the mail server ` +
        `(${tokensTaken.length} in mails that it took), ${dumps.count()} dumps, ${dumps.versions.size} versions of documents`,
    )
    expect(at.mail.logins).to.be.greaterThan(0)
    expect(tokens.size).to.be.greaterThan(tokensTaken.length)

    // The dumps are of these very mails: the hash of each token that arrived is in them.
    const everything = [...dumps.versions, output].join('\n')
    for (const token of tokensTaken) expect(tokens.has(token)).to.equal(true)
    expect(tokensTaken.filter((token) => !everything.includes(sha256(token)))).to.deep.equal([])

    expect(found(everything, [...tokens].flatMap(formsOfToken))).to.deep.equal([])
    expect(
      everything.match(/(?:reset-password|verify-email|not-me)\?[^\0"\s]*token=[\w-]{8}/),
    ).to.equal(null)
    expect(found(everything, formsOfText(login.password))).to.deep.equal([])
    // Without its signature nobody takes it.
    const signatures = client.told.map(({ token }) => token.split('.')[2] ?? '')
    expect(found(everything, signatures.flatMap(formsOfToken))).to.deep.equal([])
  })

  /** The client has trouble first, so that each of them waits for another attempt. */
  async function signOutAtClient(accounts: Account[]) {
    client.door.answers = 503
    for (const { username, email } of accounts) {
      await forgot(at, username)
      const { link } = await at.mail.mailTo(email)
      await resets(link)
    }
    const toldWith = (wanted: number) =>
      accounts.every(({ id }) =>
        client.told.some(({ claims, status }) => claims.sub === id && status === wanted),
      )
    await eventually('the client has trouble with each', () => toldWith(503))
    client.door.answers = undefined
    await eventually('the client is told of each', () => toldWith(204), 60_000)
  }

  it('and the search would find it', async () => {
    const { db } = at.database
    const token = randomBytes(32).toString('base64url')
    const raw = Buffer.from(token, 'base64url')
    const planted: Record<string, unknown> = {
      link: `http://localhost/oauth2/reset-password?token=${token}`,
      bytes: new Binary(raw),
      hex: raw.toString('hex').toUpperCase(),
      base64: raw.toString('base64'),
      hexOfText: Buffer.from(token).toString('hex'),
      base64OfText: Buffer.from(token).toString('base64'),
      base64OfMail: Buffer.from(`a ${token} b`).toString('base64'),
      base64OfLongerMail: Buffer.from(`an ${token} b`).toString('base64'),
      base64OfLongestMail: Buffer.from(`and ${token} b`).toString('base64'),
    }
    const dumps = await dumped()
    const scratch = db.collection('scratch')
    for (const [what, value] of Object.entries(planted)) await scratch.insertOne({ what, value })
    // Only the oplog remembers what is gone by the time of the last look.
    await scratch.drop()
    await dumps.stop()
    for (const what of Object.keys(planted)) {
      const versions = [...dumps.versions].filter((version) => version.includes(`\0${what}\0`))
      expect(found(versions.join('\n'), formsOfToken(token)), what).to.not.deep.equal([])
    }
  })
})

/** Reads every collection of the database, and what is new in the oplog, at random moments until it is stopped. */
async function startDumps(db: Db, local: Db) {
  const versions = new Set<string>()
  const oplog = local.collection('oplog.rs')
  const newest = async (): Promise<unknown> =>
    (await oplog.findOne({}, { sort: { $natural: -1 } }))?.['ts']
  let seenUntil = await newest()
  let count = 0
  let isStopped = false

  async function look() {
    for (const { name } of await db.listCollections({}, { nameOnly: true }).toArray()) {
      if (!name.startsWith('system.')) await keep(db.collection(name))
    }
    const until = await newest()
    await keep(oplog, { ts: { $gt: seenUntil } })
    seenUntil = until
    count += 1
  }

  async function keep(collection: Collection, filter = {}) {
    for await (const document of collection.find(filter, { raw: true })) {
      if (!(document instanceof Uint8Array)) throw new TypeError('not the bytes of a document')
      versions.add(Buffer.from(document).toString('latin1'))
    }
  }

  async function lookAgain() {
    while (!isStopped) {
      await look()
      await sleep(Math.random() * LONGEST_BETWEEN_DUMPS_MS)
    }
  }

  const looking = lookAgain()
  // Awaited by `stop`.
  looking.catch(() => {})
  return {
    /** Each version of each document that was seen, as the bytes of its BSON. */
    versions,
    /** How often everything was read. */
    count: () => count,
    /** Reads everything a last time. */
    async stop() {
      if (isStopped) return
      isStopped = true
      await looking
      await look()
    },
  }
}

/** Which of these are in the text. */
function found(text: string, forms: string[]): string[] {
  return forms.filter((form) => text.includes(form))
}

/** The characters of a token and its bytes, each in the ways that bytes are written down. */
function formsOfToken(token: string): string[] {
  const bytes = Buffer.from(token, 'base64url')
  const hex = bytes.toString('hex')
  return [
    ...formsOfText(token),
    bytes.toString('latin1'),
    hex,
    hex.toUpperCase(),
    bytes.toString('base64'),
  ]
}

/** A text as it is, in hex, and inside of a longer text in base64, wherever it starts there. */
function formsOfText(text: string): string[] {
  const hex = Buffer.from(text).toString('hex')
  const inBase64 = [0, 1, 2].map((before) => {
    const encoded = Buffer.from(`${' '.repeat(before)}${text}`).toString('base64url')
    const whole = Math.floor((before + text.length) / 3) * 4
    return encoded.slice(before === 0 ? 0 : 4, whole)
  })
  return [text, hex, hex.toUpperCase(), ...inBase64]
}
