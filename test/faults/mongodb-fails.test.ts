import { expect } from 'chai'
import { systemClock } from '../../src/clock.ts'
import { secondAfter } from '../../src/ports/login-end.ts'
import { createBrowser, createUserAgent, type Answer } from '../support/user-agent.ts'
import { eventually } from '../support/eventually.ts'
import { forgot, PASSWORD } from '../support/example-server.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { shapeOf } from '../support/observe.ts'
import { tokenOf } from '../support/person.ts'
import {
  addPerson,
  countEvents,
  linkFor,
  opens,
  postForgot,
  postReset,
  storedToken,
  usersOf,
} from './people.ts'
import { isWriteTo } from './rounds.ts'
import { endResetLeases, IS_SHORT, OUTAGES, scaled, suiteService } from './servers.ts'

const OUTAGE_MS = scaled({ full: 30_000, short: 3_000 })
const NEW_PASSWORD = 'a brand new password'
/** Longer than a lease, after which another worker takes a job. */
const RECOVERY_MS = 90_000
const UNKNOWN_LINK = `http://localhost/?token=${'x'.repeat(43)}`

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
  for (const [kind, takeAway] of Object.entries(OUTAGES)) {
    it(`answers alike for everybody while it ${kind}, survives, and goes on by itself`, async function () {
      this.timeout(OUTAGE_MS + 3 * RECOVERY_MS)
      const [known, waiting] = [await addPerson(at), await addPerson(at, false)]
      const [banned, early] = [await addPerson(at), await addPerson(at)]
      await usersOf(at).updateOne({ _id: banned.id }, { $set: { disabled: true } })
      const link = await linkFor(at, known)
      const typed: [username: string, password: string][] = [
        [known.username, PASSWORD],
        [known.username, 'wrong'],
        [waiting.username, PASSWORD],
        [waiting.username, 'wrong'],
        [banned.username, PASSWORD],
        ['nobody', PASSWORD],
      ]
      const logins = await Promise.all(typed.map(prepareLogin))
      await forgot(at, early.username)

      await takeAway(at.proxy)
      const names = [known.username, known.email, waiting.username, banned.username]
      names.push('nobody', 'no@body.example')
      let rounds = 0
      for (const end = performance.now() + OUTAGE_MS; performance.now() < end; rounds += 1) {
        const answered = await Promise.all([
          ...names.map((name) => postForgot(at, name)),
          ...names.map((name) => postResend(name)),
          createBrowser(at.baseUrl).visit('/demo/start', { accept: 'text/html' }),
          ...[link, UNKNOWN_LINK].map(openReset),
          ...[link, UNKNOWN_LINK].map((each) => postReset(at, each, NEW_PASSWORD)),
        ])
        expectAlike(answered)
        expectAlike(await Promise.all(logins.map((login) => login())))
      }
      expect(rounds).to.be.greaterThan(0)
      await at.proxy.restore()

      const isBack = async () => (await postForgot(at, 'nobody')).status === 200
      await eventually('the server answers as ever', isBack)
      const later = await addPerson(at)
      const done = await postReset(at, await linkFor(at, later, RECOVERY_MS), NEW_PASSWORD)
      expect([done.status, done.mode]).to.deep.equal([200, 'done'])
      expect(await opens(at, later, NEW_PASSWORD)).to.equal(true)
      const arrived = await eventually(
        'the mail asked for before the outage',
        () => at.mail.mails.find(({ to }) => to.includes(early.email)),
        RECOVERY_MS,
      )
      for (const login of logins.slice(0, 2)) expect((await login()).status).to.not.equal(503)
      expect((await postReset(at, arrived.link, NEW_PASSWORD)).mode).to.equal('done')
      const spent = await postReset(at, link, NEW_PASSWORD)
      expect(spent.mode, 'the link that was opened during the outage').to.equal('done')
      expect(at.server.output()).not.to.match(/unhandled/i)
      expect(at.server.output(), 'the log').not.to.include(new URL(at.proxy.uri).host)
    })
  }

  for (const [index, step] of steps.entries()) {
    it(`leaves a reset complete or not begun when it goes away ${step.when} ${step.title} (FLT-09)`, async function () {
      this.timeout(3 * RECOVERY_MS)
      const person = await addPerson(at)
      const link = await linkFor(at, person, RECOVERY_MS)
      const outage = at.proxy.interrupt(
        { matches: isWriteTo(step.collection), when: step.when, nth: step.nth ?? 1 },
        at.proxy.sever,
      )
      const answer = await postReset(at, link, NEW_PASSWORD)
      expect((await outage.happened)?.collection).to.equal(step.collection)
      expect([answer.status, answer.mode]).to.deep.equal([503, 'unavailable'])
      await at.proxy.restore()
      // The full form waits for it once.
      if (index > 1 || IS_SHORT) await endResetLeases(at)

      const isBegun = step.when === 'after' || index > 0
      await eventually('the reset is over', () => isSettled(link, isBegun), RECOVERY_MS)
      // What was signed in up to the second of the reset has ended.
      await secondAfter(systemClock, new Date())
      expect(await opens(at, person, NEW_PASSWORD)).to.equal(isBegun)
      expect(await opens(at, person, PASSWORD)).to.equal(!isBegun)
      const events = await countEvents(at, person, 'password_reset_completed')
      expect(events).to.equal(isBegun ? 1 : 0)
      const again = await postReset(at, link, 'another new password')
      expect(again.mode).to.equal(isBegun ? 'invalid' : 'done')
      expect(at.server.output()).not.to.match(/unhandled/i)
    })
  }

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

  async function isSettled(link: string, isBegun: boolean): Promise<boolean> {
    const { live_of, claimed_at, used_at, completed_at } = await storedToken(at, link)
    return isBegun
      ? used_at instanceof Date && completed_at instanceof Date
      : claimed_at === null && live_of !== undefined
  }
})

function expectAlike(answers: Answer[]): void {
  const [first, ...others] = answers
  if (!first) throw new TypeError('nobody asked')
  expect([first.status, first.page, first.mode]).to.deep.equal([503, 'error', 'unavailable'])
  expect(first.headers.get('retry-after')).to.equal('60')
  for (const other of others) expect(shapeOf(other), other.url).to.deep.equal(shapeOf(first))
}
