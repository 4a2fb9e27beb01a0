import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { MongoClient } from 'mongodb'
import { systemClock } from '../../src/clock.ts'
import type { MailKind } from '../../src/ports/mail-kinds.ts'
import { secondAfter } from '../../src/ports/login-end.ts'
import { createBrowser, type Browser } from '../support/browser.ts'
import { eventually } from '../support/eventually.ts'
import {
  type Account,
  addAccounts,
  type ExampleServer,
  forgot,
  outboxIsQuiet,
  PASSWORD,
} from '../support/example-server.ts'
import type { MongoProxy } from '../support/mongo-proxy.ts'
import {
  describeWithMongo,
  describeWithReplicaSet,
  kill,
  type MongoServer,
  newServer,
} from '../support/mongod.ts'
import { sha256, shapeOf, tokenOf } from '../support/observe.ts'
import { several } from '../support/several.ts'
import { createUserAgent, type Answer } from '../support/user-agent.ts'
import { opens, postForgot, postReset } from './people.ts'
import { isWriteTo } from './rounds.ts'
import { endResetLeases, IS_SHORT, scaled, suiteService } from './servers.ts'

const OUTAGE_MS = scaled({ full: 30_000, short: 3_000 })
/** Longer than a lease, after which another worker takes a job. */
const RECOVERY_MS = 90_000
const UNKNOWN_LINK = `http://localhost/?token=${'x'.repeat(43)}`

const KINDS = {
  'refuses connections': (proxy: MongoProxy) => proxy.sever(),
  'accepts connections and is silent': (proxy: MongoProxy) => proxy.stall(),
} as const

/** One step of a reset, by the command that it sends. */
interface Step {
  title: string
  when: 'before' | 'after'
  collection: string
  nth?: number
}

const STEPS: Step[] = [
  { title: 'the link is claimed', when: 'before', collection: 'password_reset_tokens' },
  { title: 'the link is claimed', when: 'after', collection: 'password_reset_tokens' },
  { title: 'the password is replaced', when: 'before', collection: 'users' },
  { title: 'the password is replaced', when: 'after', collection: 'users' },
  { title: 'the link is marked used', when: 'after', collection: 'password_reset_tokens', nth: 2 },
  { title: 'OAuth sessions end', when: 'before', collection: 'session_cutoffs' },
  { title: 'IdP sessions end', when: 'after', collection: 'session_cutoffs', nth: 2 },
  { title: 'the event is logged', when: 'before', collection: 'audit_events' },
  { title: 'the event is logged', when: 'after', collection: 'audit_events' },
  { title: 'the reset is completed', when: 'after', collection: 'password_reset_tokens', nth: 3 },
]
const steps = scaled({ full: STEPS, short: STEPS.filter((_, index) => index % 3 === 0) })

describeWithMongo('The example server while MongoDB is gone', () => {
  const at = suiteService({ settings: { require_email_verification: 'true' } })
  let known: Account
  let waiting: Account
  let banned: Account
  let linked: Account[]
  let early: Account[]
  let resetters: Account[]

  before(async () => {
    const { db } = at.database
    const one = async (...[name, options]: [string, object?]) =>
      (await addAccounts(db, name, 1, options))[0] as Account
    known = await one('known')
    waiting = await one('waiting', { verified: false })
    banned = await one('banned', { disabled: true })
    linked = await addAccounts(db, 'linked', 2)
    early = await addAccounts(db, 'early', 2)
    resetters = await addAccounts(db, 'resetter', steps.length)
  })

  async function linkFor({ username, email }: Account): Promise<string> {
    const its = () => at.mail.mails.filter(({ to }) => to.includes(email))
    const before = its().length
    await forgot(at, username)
    return (await eventually(`a mail to ${email}`, () => its()[before], RECOVERY_MS)).link
  }

  async function expectWorksAgain(account: Account, password: string) {
    await eventually(
      'the server answers as ever',
      async () => (await postForgot(at, 'nobody')).status === 200,
    )
    const done = await postReset(at, await linkFor(account), password)
    expect([done.status, done.mode]).to.deep.equal([200, 'done'])
    expect(await opens(at, account, password)).to.equal(true)
  }

  for (const [index, [kind, takeAway]] of Object.entries(KINDS).entries()) {
    it(`answers alike for everybody while it ${kind}, survives, and goes on by itself`, async function () {
      this.timeout(OUTAGE_MS + 3 * RECOVERY_MS)
      const link = await linkFor(linked[index] as Account)
      const logins = await Promise.all(typed().map(prepareLogin))
      const { username, email } = early[index] as Account
      await forgot(at, username)

      await takeAway(at.proxy)
      const names = [known.username, known.email, waiting.username, banned.username]
      names.push('nobody', 'no@body.example')
      const over = sleep(OUTAGE_MS)
      let rounds = 0
      for (let isOver = false; !isOver; isOver = await hasSettled(over)) {
        const answered = await Promise.all([
          ...names.map((name) => postForgot(at, name)),
          ...names.map((name) => postResend(name)),
          createBrowser(at.baseUrl).visit('/demo/start', { accept: 'text/html' }),
          ...[link, UNKNOWN_LINK].map(openReset),
          ...[link, UNKNOWN_LINK].map((each) => postReset(at, each, 'a new password')),
        ])
        expectAlike(answered)
        expectAlike(await Promise.all(logins.map((login) => login())))
        rounds += 1
      }
      expect(rounds).to.be.greaterThan(0)
      await at.proxy.restore()

      await expectWorksAgain(known, `a new password, number ${index}`)
      const arrived = await eventually(
        'the mail asked for before the outage',
        () => at.mail.mails.find(({ to }) => to.includes(email)),
        RECOVERY_MS,
      )
      expect((await postReset(at, arrived.link, 'a new password')).mode).to.equal('done')
      const spent = await postReset(at, link, 'a new password')
      expect(spent.mode, 'the link that was opened during the outage').to.equal('done')
      for (const login of logins.slice(0, 2)) expect((await login()).status).to.not.equal(503)
      expect(at.server.output()).not.to.match(/unhandled/i)
      expect(at.server.output(), 'the log').not.to.include(new URL(at.proxy.uri).host)
    })
  }

  for (const [index, step] of steps.entries()) {
    it(`leaves a reset complete or not begun when it goes away ${step.when} ${step.title} (FLT-09)`, async function () {
      this.timeout(3 * RECOVERY_MS)
      const account = resetters[index] as Account
      const newPassword = `the new password of ${account.username}`
      const link = await linkFor(account)
      const outage = at.proxy.interrupt(
        { matches: isWriteTo(step.collection), when: step.when, nth: step.nth ?? 1 },
        at.proxy.sever,
      )
      const answer = await postReset(at, link, newPassword)
      expect((await outage.happened)?.collection).to.equal(step.collection)
      expect([answer.status, answer.mode]).to.deep.equal([503, 'unavailable'])
      await at.proxy.restore()
      // The full form waits for it once.
      if (index > 1 || IS_SHORT) await endResetLeases(at)

      const isBegun = step.when === 'after' || index > 0
      await eventually('the reset is over', () => isSettled(link, isBegun), RECOVERY_MS)
      // What was signed in up to the second of the reset has ended.
      await secondAfter(systemClock, new Date())
      expect(await opens(at, account, newPassword)).to.equal(isBegun)
      expect(await opens(at, account, PASSWORD)).to.equal(!isBegun)
      const completed = {
        type: 'password_reset_completed',
        _id: `completed:${String((await storedToken(link))['_id'])}` as never,
      }
      const events = await at.database.db.collection('audit_events').countDocuments(completed)
      expect(events).to.equal(isBegun ? 1 : 0)
      const again = await postReset(at, link, 'another new password')
      expect(again.mode).to.equal(isBegun ? 'invalid' : 'done')
      expect(at.server.output()).not.to.match(/unhandled/i)
    })
  }

  const typed = (): [username: string, password: string][] => [
    [known.username, PASSWORD],
    [known.username, 'wrong'],
    [waiting.username, PASSWORD],
    [waiting.username, 'wrong'],
    [banned.username, PASSWORD],
    ['nobody', PASSWORD],
  ]

  /** A browser that shows the login page already; answers how to post it. */
  async function prepareLogin([username, password]: [string, string]) {
    const browser = createBrowser(at.baseUrl)
    const { hidden, page } = await browser.visit('/demo/start')
    expect(page).to.equal('login')
    return () => browser.postForm('/oauth2/login', { ...hidden, username, password })
  }

  const postResend = (username: string) =>
    createUserAgent().post(`${at.oauthUrl}/resend-verification`, { username })

  const openReset = (link: string) =>
    createUserAgent().get(`${at.oauthUrl}/reset-password?token=${tokenOf(link)}`)

  async function storedToken(link: string) {
    const tokens = at.database.db.collection('password_reset_tokens')
    const record = await tokens.findOne({ token_hash: sha256(tokenOf(link)) })
    if (!record) throw new Error('the token is gone')
    return record
  }

  async function isSettled(link: string, isBegun: boolean) {
    const record = await storedToken(link)
    return isBegun
      ? record['used_at'] instanceof Date && record['completed_at'] instanceof Date
      : record['claimed_at'] === null && record['live'] === true
  }
})

function expectAlike(answers: Answer[]): void {
  const [first, ...others] = answers
  if (!first) throw new TypeError('nobody asked')
  expect([first.status, first.page, first.mode]).to.deep.equal([503, 'error', 'unavailable'])
  expect(first.headers.get('retry-after')).to.equal('60')
  for (const other of others) expect(shapeOf(other), other.url).to.deep.equal(shapeOf(first))
}

async function hasSettled(promise: Promise<unknown>): Promise<boolean> {
  return Promise.race([promise.then(() => true), sleep(0, false)])
}

const PEOPLE = scaled({ full: 60, short: 24 })
const AT_ONCE = 4
const WITHIN_MS = 120_000
const NEW_PASSWORD = 'a brand new password'

/** All that is held up to the host, and turned off by what we ask of each operation. */
const URI_OPTIONS = 'readPreference=secondaryPreferred&w=1'

// Whoever gave us a server did not give it to be killed.
const describeWithThree = process.env['MONGODB_URI'] ? describe.skip : describeWithReplicaSet

describeWithThree('A replica set of three whose primary goes', () => {
  let three: MongoServer
  let client: MongoClient
  let second: ExampleServer
  let users: { account: Account; isVerified: boolean }[]
  /** What was answered in place of a page. */
  let refused: { status: number; at: number }[] = []

  const at = suiteService(async () => {
    three = await newServer('replica set', 3)
    client = await MongoClient.connect(three.uri)
    const uri = three.uri.replace('/?', `/flows?${URI_OPTIONS}&`)
    const database = { client, db: client.db('flows'), uri, drop: () => client.close() }
    return { database, settings: { require_email_verification: 'true' }, isDirect: true }
  })

  before(async function () {
    this.timeout(180_000)
    second = await at.another()
    const verified = await addAccounts(at.database.db, 'verified', PEOPLE / 2)
    const others = await addAccounts(at.database.db, 'other', PEOPLE / 2, { verified: false })
    users = verified.flatMap((account, index) => [
      { account, isVerified: true },
      { account: others[index] as Account, isVerified: false },
    ])
  })

  after(() => three?.members.forEach(kill))

  const primary = async () => {
    const { primary: address } = await client.db('admin').command({ hello: 1 })
    return Number(String(address).split(':').at(-1))
  }
  const stepDown = () => client.db('admin').command({ replSetStepDown: 10, force: true })
  const killPrimary = async () => {
    const port = await primary()
    three.members.filter(({ instanceInfo }) => instanceInfo?.port === port).forEach(kill)
  }

  /** People ask again where the service says that it does not work for now. */
  function answered(what: string, ask: () => Promise<Answer>): Promise<Answer> {
    const asked = async () => {
      const answer = await ask()
      if (answer.status < 500) return answer
      refused.push({ status: answer.status, at: performance.now() })
      return undefined
    }
    return eventually(what, asked, WITHIN_MS)
  }

  function signIn({ username }: Account, password: string, browser: Browser) {
    return answered(`a login of ${username}`, async () => {
      const form = await browser.visit('/demo/start')
      if (form.status >= 500) return form
      return browser.submit('/oauth2/login', { ...form.hidden, username, password })
    })
  }

  function linkTo({ email }: Account, kind: MailKind) {
    const its = () => at.mail.mails.findLast((one) => one.to.includes(email) && one.kind === kind)
    return eventually(`a mail to ${email}`, its, WITHIN_MS)
  }

  async function resets(account: Account, browser: Browser) {
    const sent = await answered('a request for a link', () =>
      browser.postForm('/oauth2/forgot-password', { identifier: account.username }),
    )
    expect([sent.status, sent.mode]).to.deep.equal([200, 'sent'])
    const token = tokenOf((await linkTo(account, 'password_reset')).link)
    const passwords = { password: NEW_PASSWORD, confirm_password: NEW_PASSWORD }
    const done = await answered('a reset', () =>
      browser.postForm('/oauth2/reset-password', { token, ...passwords }),
    )
    // After an answer that was lost, the link is used.
    expect(done.mode).to.be.oneOf(['done', 'used', 'invalid'])
  }

  async function verifies(account: Account, browser: Browser) {
    const blocked = await signIn(account, PASSWORD, browser)
    expect([blocked.status, blocked.mode]).to.deep.equal([200, 'blocked'])
    const { link } = await linkTo(account, 'email_verification')
    const { pathname, search } = new URL(link)
    await answered('a verification', () => browser.visit(pathname + search))
  }

  for (const [title, take, part] of [
    ['steps down', stepDown, 0],
    ['is killed', killPrimary, 1],
  ] as const) {
    it(`loses no mail, no reset and no login where it ${title} (FLT-09)`, async function () {
      this.timeout(600_000)
      const half = users.slice((part * PEOPLE) / 2, ((part + 1) * PEOPLE) / 2)
      const before = await primary()
      await several(half, AT_ONCE, async ({ account, isVerified }, index) => {
        if (index === AT_ONCE) await take()
        // Logins are led to the base URL, which is that of the first.
        if (!isVerified) return verifies(account, createBrowser(at.baseUrl))
        return resets(account, createBrowser((index % 4 === 0 ? at : second).baseUrl))
      })
      expect(await primary()).to.not.equal(before)

      for (const { account, isVerified } of half) {
        const browser = createBrowser(at.baseUrl)
        const password = isVerified ? NEW_PASSWORD : PASSWORD
        const answer = await eventually(
          `${account.username} is signed in`,
          async () => {
            const one = await signIn(account, password, browser)
            return one.mode === 'signed_in' ? one : undefined
          },
          WITHIN_MS,
        )
        expect(answer.page).to.equal('demo')
      }
      const { db } = at.database
      await outboxIsQuiet(db, WITHIN_MS)
      const resetters = half.filter(({ isVerified }) => isVerified).length
      const events = () => db.collection('audit_events')
      await eventually(
        'each reset is recorded',
        async () => {
          const completed = await events().countDocuments({ type: 'password_reset_completed' })
          return completed === resetters * (part + 1)
        },
        WITHIN_MS,
      )
      expect(new Set(refused.map(({ status }) => status))).to.be.deep.oneOf([
        new Set(),
        new Set([503]),
      ])
      const ms = Math.round((refused.at(-1)?.at ?? 0) - (refused[0]?.at ?? 0))
      console.log(`The primary ${title}: ${refused.length} answers 503, within ${ms} ms`)
      refused = []
    })
  }
})
