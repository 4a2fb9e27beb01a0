import { expect } from 'chai'
import { withDeleted } from '../support/admin.ts'
import { newLinkFrom, reasonOf } from '../support/bad-links.ts'
import { expectExpired, expectResumed, expectStillWorks } from '../support/blocked-login.ts'
import {
  DYNAMIC_URI,
  type DynamicClient,
  dynamicLogin,
  expectPasswordThenCode,
  MACHINE,
} from '../support/clients.ts'
import type { Harness } from '../support/harness.ts'
import { isIdle, later, withoutJobs } from '../support/jobs.ts'
import { formsOf, press } from '../support/page-forms.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { moveTime } from '../support/time.ts'
import { type Answer, createUserAgent } from '../support/user-agent.ts'
import {
  type Person,
  accountOf,
  addUnverified,
  addVerified,
  blockedLogin,
  sessionId,
  setsSession,
} from '../support/person.ts'

describe('A verification link after something changed meanwhile (4.6)', () => {
  const deleted = new Set<string>()
  const h: Harness = suiteHarness({ flows: { users: withDeleted(() => h.users, deleted) } })

  const ended: Record<string, (client: DynamicClient) => Promise<unknown>> = {
    'the redirect URI is no longer the client’s': ({ change }) =>
      change({ redirect_uris: [`${DYNAMIC_URI}/`] }),
    'the client is gone': ({ remove }) => remove(),
    'the client may no longer ask for a code': ({ change }) => change(MACHINE),
  }
  for (const [title, change] of Object.entries(ended)) {
    it(`verifies, and redirects nowhere, once ${title} (RED-05)`, async () => {
      const client = await dynamicLogin(h)
      await change(client)
      const { login } = client
      await login.isOnlyVerified(await login.agent.get(login.link))
    })
  }

  it('finishes the login of a client that only changed its name', async () => {
    const { login, change } = await dynamicLogin(h)
    await change({ client_name: 'Another name' })
    await login.stillGetsIn()
  })

  /** The page asks for no new link for this user: there is nobody to send it to. */
  async function expectNoMailFrom(page: Answer, { username }: Person) {
    await withoutJobs(h, async () => {
      const form = formsOf(page).find(({ action }) => action.endsWith('/resend-verification'))
      const typed = form && 'username' in form.fields ? { username } : {}
      const sent = await press(createUserAgent(), page, '/resend-verification', { typed })
      expect([sent.status, sent.mode]).to.deep.equal([200, 'sent'])
      await isIdle(h)
    })
  }

  type Change = (user: Person) => unknown

  /** The page that says that something changed; nothing is verified. */
  async function pageAfter(login: Person, change: Change) {
    await change(login)
    const page = await login.agent.get(login.link)
    expectExpired(page)
    expect(reasonOf(page)).to.equal('changed')
    await login.getsNothing(page)
    return page
  }

  // That it stays so once the account is enabled again is in test/http/disabled-account.test.ts.
  const gone: Record<string, Change> = {
    'while the account is disabled': (user) => user.becomes({ disabled: true }),
    'once the account is deleted': ({ id }) => deleted.add(id),
  }
  for (const [when, change] of Object.entries(gone)) {
    it(`is expired ${when}, and asks for no new one`, async () => {
      const login = await blockedLogin(h)
      await expectNoMailFrom(await pageAfter(login, change), login)
    })
  }

  it('is expired once the address is another one, and never verifies that; a new link goes there (RACE-06)', async () => {
    const move: Change = (user) => user.becomes({ email: `new-${user.email}` })
    const [returned, moved] = [await blockedLogin(h), await blockedLogin(h)]
    await pageAfter(returned, move)
    await returned.becomes({ email: returned.email })
    await returned.stillGetsIn()
    const page = await pageAfter(moved, move)
    await moved.agent.get(await newLinkFrom(h, moved.agent, page, moved, `new-${moved.email}`))
    expect(moved.mailCount()).to.equal(1)
    expect(await moved.isVerified()).to.equal(true)
  })

  it('is expired once the password was reset, and a fresh link verifies (SES-14)', async () => {
    const login = await blockedLogin(h)
    const reset = await h.reset(await login.forgets(), 'a brand new password')
    expect(reset.mode).to.equal('done')
    const answer = await login.agent.get(login.link)
    expectExpired(answer)
    await login.getsNothing(answer)
    const fresh = await login.asksAgain()
    await login.isOnlyVerified(await login.agent.get(fresh))
  })

  it('is expired, with an option to ask for a new link, once another link of the user was used (VER-06)', async () => {
    const user = await addUnverified(h)
    const leftover = await blockedLogin(h, { user })
    const used = await blockedLogin(h, { user })
    await used.stillGetsIn()
    const answer = await leftover.agent.get(leftover.link)
    expectExpired(answer)
    expect(answer.text).to.include('name="username"')
    expect(sessionId(h, leftover.agent)).to.equal(undefined)
  })

  it('says verified, without session and code, once an admin verified the account (TOK-22)', async () => {
    const login = await blockedLogin(h)
    await login.becomes({ emailVerified: true })
    for (const _time of [1, 2]) {
      await login.isOnlyVerified(await login.agent.get(login.link))
    }
  })

  it('is expired once everything of the account was ended; a new one verifies, and signs nobody in', async () => {
    const login = await blockedLogin(h)
    await h.flows.endSessions(login.id)
    const page = await login.agent.get(login.link)
    expectExpired(page)
    await login.getsNothing(page)
    expect((await press(login.agent, page, '/resend-verification')).mode).to.equal('sent')
    const { link } = await h.mail.mailTo(login.email ?? '', 2)
    await login.isOnlyVerified(await login.agent.get(link))
  })

  it('finishes a login that began after everything of the account was ended', async () => {
    const user = await addUnverified(h)
    await h.flows.endSessions(user.id)
    await expectStillWorks(h, await blockedLogin(h, { user }))
  })

  it('leaves other accounts as they are', async () => {
    const other = await addVerified(h)
    const bystander = createUserAgent()
    await h.signIn(bystander, other.username)
    const waiting = await blockedLogin(h)
    await expectStillWorks(h, await blockedLogin(h))
    expect(await accountOf(h, bystander)).to.equal(other.id)
    await waiting.stillGetsIn()
  })

  it('is expired at the end of email_verification_expiration; one click sends a fresh one, which finishes the same login (TOK-06)', async () => {
    const login = await blockedLogin(h)
    await later(h, 24 * 3_600_000)
    const person = createUserAgent()
    const page = await person.get(login.link)
    expectExpired(page)
    expect(reasonOf(page)).to.equal('expired')
    await login.getsNothing(page)
    const link = await newLinkFrom(h, person, page, login)
    await expectResumed(h, { ...login, link }, await person.get(link))
  })

  it('verifies, then asks for the password again, once max_age has passed since its check', async () => {
    const login = await blockedLogin(h, { extra: { max_age: '600' } })
    await moveTime(601_000)
    const other = createUserAgent()
    const answer = await other.get(login.link)
    expect(answer.location).to.match(/\/login\?interaction=/)
    expect(await login.isVerified()).to.equal(true)
    expect(setsSession(answer)).to.equal(false)
    await expectPasswordThenCode(h, login, other, answer)
  })
})
