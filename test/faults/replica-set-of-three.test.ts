import { expect } from 'chai'
import { MongoClient } from 'mongodb'
import { createBrowser, type Browser } from '../support/browser.ts'
import { outboxIsQuiet } from '../support/example-requests.ts'
import { eventually } from '../support/eventually.ts'
import type { ExampleServer } from '../support/example-server.ts'
import type { MailKind } from '../../src/ports/mail-kinds.ts'
import { startMailServer, type MailServer } from '../support/mail-server.ts'
import {
  mongoUnavailable,
  startThreeMembers,
  type ThreeMembers,
} from '../support/mongod-servers.ts'
import { describeWithReplicaSet } from '../support/mongod.ts'
import { leaveOutAnywhere } from '../support/setup-advice.ts'
import type { Answer } from '../support/user-agent.ts'
import { several } from '../support/several.ts'
import { scaled } from './scale.ts'
import { startSeededServer, userNamed, type SeededUser } from './seeded-server.ts'
import { tokenOf } from '../support/person.ts'

const PEOPLE = scaled({ full: 60, short: 24 })
const AT_ONCE = 4
const WITHIN_MS = 120_000
const NEW_PASSWORD = 'a brand new password'

/** All that is held up to the host, and turned off by what we ask of each operation. */
const URI_OPTIONS = 'readPreference=secondaryPreferred&w=1'

describeWithReplicaSet('A replica set of three whose primary goes', () => {
  let members: ThreeMembers
  let client: MongoClient
  let mail: MailServer
  const servers: ExampleServer[] = []
  const users = Array.from({ length: PEOPLE }, (_, index) =>
    userNamed(`person-${index}`, { email_verified: index % 2 === 0 }),
  )
  /** What was answered in place of a page. */
  let refused: { status: number; at: number }[] = []

  before(async function () {
    this.timeout(300_000)
    const three = await startThreeMembers()
    if (!three) leaveOutAnywhere(this, mongoUnavailable('replica set') ?? 'MONGODB_URI is not ours')
    members = three
    client = await MongoClient.connect(members.uri)
    mail = await startMailServer()
    const uri = members.uri.replace('/?', `/flows?${URI_OPTIONS}&`)
    const first = await startSeededServer({ uri, smtpPort: mail.port, users })
    servers.push(first)
    const variables = { BASE_URL: first.baseUrl }
    servers.push(await startSeededServer({ uri, smtpPort: mail.port, users, variables }))
  })

  after(async function () {
    this.timeout(60_000)
    await Promise.all(servers.map((server) => server.kill()))
    await mail?.close()
    await client?.close()
    await members?.stop()
  })

  /** Logins are led to the base URL, which is that of the first. */
  const browserAt = (server?: ExampleServer) => createBrowser(`http://localhost:${server?.port}`)

  const primary = async () => {
    const { primary: address } = await client.db('admin').command({ hello: 1 })
    return Number(String(address).split(':').at(-1))
  }
  const stepDown = () => client.db('admin').command({ replSetStepDown: 10, force: true })
  const kill = async () => members.kill(await primary())

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

  function signIn({ username }: SeededUser, password: string, browser: Browser) {
    return answered(`a login of ${username}`, async () => {
      const form = await browser.visit('/demo/start')
      if (form.status >= 500) return form
      return browser.submit('/oauth2/login', { ...form.hidden, username, password })
    })
  }

  function linkTo({ email }: SeededUser, kind: MailKind) {
    const its = () => mail.mails.findLast((one) => one.to.includes(email) && one.kind === kind)
    return eventually(`a mail to ${email}`, its, WITHIN_MS)
  }

  async function resets(user: SeededUser, browser: Browser) {
    const sent = await answered('a request for a link', () =>
      browser.postForm('/oauth2/forgot-password', { identifier: user.username }),
    )
    expect([sent.status, sent.mode]).to.deep.equal([200, 'sent'])
    const token = tokenOf((await linkTo(user, 'password_reset')).link)
    const passwords = { password: NEW_PASSWORD, confirm_password: NEW_PASSWORD }
    const done = await answered('a reset', () =>
      browser.postForm('/oauth2/reset-password', { token, ...passwords }),
    )
    // After an answer that was lost, the link is used.
    expect(done.mode).to.be.oneOf(['done', 'used', 'invalid'])
  }

  async function verifies(user: SeededUser, browser: Browser) {
    const blocked = await signIn(user, user.password, browser)
    expect([blocked.status, blocked.mode]).to.deep.equal([200, 'blocked'])
    const { link } = await linkTo(user, 'email_verification')
    const { pathname, search } = new URL(link)
    await answered('a verification', () => browser.visit(pathname + search))
  }

  for (const [title, take, part] of [
    ['steps down', stepDown, 0],
    ['is killed', kill, 1],
  ] as const) {
    it(`loses no mail, no reset and no login where it ${title} (FLT-09)`, async function () {
      this.timeout(600_000)
      const half = users.slice((part * PEOPLE) / 2, ((part + 1) * PEOPLE) / 2)
      const before = await primary()
      const journeys = several(half, AT_ONCE, async (user, index) => {
        if (index === AT_ONCE) await take()
        if (user.email_verified) await resets(user, browserAt(servers[index % 4 === 0 ? 0 : 1]))
        else await verifies(user, browserAt(servers[0]))
      })
      await journeys
      expect(await primary()).to.not.equal(before)

      for (const user of half) {
        const browser = browserAt(servers[0])
        const password = user.email_verified ? NEW_PASSWORD : user.password
        const answer = await eventually(
          `${user.username} is signed in`,
          async () => {
            const one = await signIn(user, password, browser)
            return one.mode === 'signed_in' ? one : undefined
          },
          WITHIN_MS,
        )
        expect(answer.page).to.equal('demo')
      }
      const db = client.db('flows')
      await outboxIsQuiet(db, WITHIN_MS)
      const resetters = half.filter(({ email_verified }) => email_verified).length
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
