import { expect } from 'chai'
import { MongoClient } from 'mongodb'
import type { MailKind } from '../../src/contract/mail-kinds.ts'
import { createBrowser, type Browser, type Answer } from '../support/user-agent.ts'
import { eventually } from '../support/eventually.ts'
import {
  type Account,
  type ExampleServer,
  outboxIsQuiet,
  PASSWORD,
} from '../support/example-server.ts'
import { describeWithReplicaSet, kill, type MongoServer, newServer } from '../support/mongod.ts'
import { several } from './load.ts'
import { addPerson, postForgot, postReset, type Person } from './people.ts'
import { scaled, suiteService } from './servers.ts'

const NEW_PASSWORD = 'a brand new password'
const PEOPLE = scaled({ full: 60, short: 24 })
const AT_ONCE = 4
const WITHIN_MS = 120_000

/** All that is held up to the host, and turned off by what we ask of each operation. */
const URI_OPTIONS = 'readPreference=secondaryPreferred&w=1'

// Whoever gave us a server did not give it to be killed.
const describeWithThree = process.env['MONGODB_URI'] ? describe.skip : describeWithReplicaSet

describeWithThree('A replica set of three whose primary goes', () => {
  let three: MongoServer
  let client: MongoClient
  let second: ExampleServer
  /** Every other one is verified. */
  const users: Person[] = []
  /** What was answered in place of a page. */
  let refused: { status: number; at: number }[] = []

  const at = suiteService(async () => {
    three = await newServer('replica set', 3)
    client = await MongoClient.connect(three.uri)
    const uri = three.uri.replace('/?', `/flows?${URI_OPTIONS}&`)
    const database = { client, db: client.db('flows'), uri, drop: () => client.close() }
    return { database, settings: { require_email_verification: 'true' }, isDirect: true }
  })

  before(async () => {
    second = await at.another()
    for (let index = 0; index < PEOPLE; index += 1) users.push(await addPerson(at, index % 2 === 0))
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

  async function resets(account: Account, place: { baseUrl: string }) {
    const sent = await answered('a request', () => postForgot(place, account.username))
    expect([sent.status, sent.mode]).to.deep.equal([200, 'sent'])
    const { link } = await linkTo(account, 'password_reset')
    const done = await answered('a reset', () => postReset(place, link, NEW_PASSWORD))
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
    it(`loses no mail, no reset and no login where it ${title} (FLT-09)`, async () => {
      const half = users.slice((part * PEOPLE) / 2, ((part + 1) * PEOPLE) / 2)
      const before = await primary()
      await several(half, AT_ONCE, async (person, index) => {
        if (index === AT_ONCE) await take()
        // Logins are led to the base URL, which is that of the first.
        if (index % 2 !== 0) return verifies(person, createBrowser(at.baseUrl))
        return resets(person, index % 4 === 0 ? at : second)
      })
      expect(await primary()).to.not.equal(before)

      for (const [index, person] of half.entries()) {
        const browser = createBrowser(at.baseUrl)
        const password = index % 2 === 0 ? NEW_PASSWORD : PASSWORD
        const answer = await eventually(
          `${person.username} is signed in`,
          async () => {
            const one = await signIn(person, password, browser)
            return one.mode === 'signed_in' ? one : undefined
          },
          WITHIN_MS,
        )
        expect(answer.page).to.equal('demo')
      }
      const { db } = at.database
      await outboxIsQuiet(at.database, WITHIN_MS)
      const resetters = half.length / 2
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
