import { expect } from 'chai'
import { eventually } from '../support/eventually.ts'
import { forgot, outboxIsQuiet, PASSWORD } from '../support/example-server.ts'
import type { ReceivedMail } from '../support/mail-server.ts'
import { shapeOf } from '../support/observe.ts'
import { tokenOf } from '../support/person.ts'
import { type Answer, createBrowser, createUserAgent } from '../support/user-agent.ts'
import { addPerson, disable, linkFor, opens, postForgot, postReset, type Person } from './people.ts'
import type { Reset } from './resets.ts'

/** What becomes of a database for a while. */
export interface Outage<At> {
  kind: string
  /** What was sent meanwhile may be done once it is over, though nobody waits for it any more. */
  mayDoLater?: boolean
  /** Answers what ends it. */
  begin(at: At): Promise<() => Promise<unknown>>
}

/** Longer than a lease, after which another worker takes a job. */
export const RECOVERY_MS = 300_000
const NEW_PASSWORD = 'a brand new password'
const UNKNOWN_LINK = `http://localhost/?token=${'x'.repeat(43)}`

/** @param host - of the database, which no log tells. */
export function itSurvivesOutages<At extends Reset['at']>(
  at: At,
  outageMs: number,
  outages: Outage<At>[],
  host: () => string,
): void {
  for (const { kind, begin, mayDoLater } of outages) {
    it(`answers alike for everybody while it ${kind}, survives, and goes on by itself`, async () => {
      const [known, waiting] = [await addPerson(at), await addPerson(at, false)]
      const [banned, early] = [await addPerson(at), await addPerson(at)]
      await disable(at, banned)
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

      const end = await begin(at)
      const names = [known.username, known.email, waiting.username, banned.username]
      names.push('nobody', 'no@body.example')
      let rounds = 0
      for (const until = performance.now() + outageMs; performance.now() < until; rounds += 1) {
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
      await end()

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
      const good = mayDoLater ? await newestLinkOf(known) : link
      const spent = await postReset(at, good, NEW_PASSWORD)
      expect(spent.mode, 'the link that was opened during the outage').to.equal('done')
      expect(await opens(at, known, NEW_PASSWORD)).to.equal(true)
      expect(at.server.output()).not.to.match(/unhandled/i)
      expect(at.server.output(), 'the log').not.to.include(host())
    })
  }

  /** Once all mails have left: one that was asked for during the outage takes the place of those before. */
  async function newestLinkOf({ email }: Person): Promise<string> {
    await outboxIsQuiet(at.database, RECOVERY_MS)
    const isIts = ({ to, kind }: ReceivedMail) => kind === 'password_reset' && to.includes(email)
    return at.mail.mails.findLast(isIts)?.link ?? ''
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
}

function expectAlike(answers: Answer[]): void {
  const [first, ...others] = answers
  if (!first) throw new TypeError('nobody asked')
  expect([first.status, first.page, first.mode]).to.deep.equal([503, 'error', 'unavailable'])
  expect(first.headers.get('retry-after')).to.equal('60')
  for (const other of others) expect(shapeOf(other), other.url).to.deep.equal(shapeOf(first))
}
