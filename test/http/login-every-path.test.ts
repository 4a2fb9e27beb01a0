import { expect } from 'chai'
import { withDeleted } from '../support/admin.ts'
import { expectStillWorks, silently } from '../support/blocked-login.ts'
import { expectPage } from '../support/expect-page.ts'
import type { Harness } from '../support/harness.ts'
import { signedIn } from '../support/other-account.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent, type UserAgent } from '../support/user-agent.ts'
import { accountOf, addUnverified, addVerified, blockedLogin } from '../support/person.ts'

describe('require_email_verification on every path to a code', () => {
  const deleted = new Set<string>()
  const h: Harness = suiteHarness({
    flows: { users: withDeleted(() => h.users, deleted) },
    provider: {
      async findAccount(_ctx, sub) {
        const user = deleted.has(sub) ? undefined : await h.users.findById(sub)
        return user && !user.disabled ? { accountId: sub, claims: () => ({ sub }) } : undefined
      },
    },
  })

  async function expectLoginPage(agent: UserAgent) {
    const { url } = await h.party.begin()
    expectPage(await h.follow(agent, await agent.get(url)), 200, 'login', 'login')
    expect((await silently(h, agent)).get('error')).to.equal('login_required')
  }

  it('holds for a session from before it was switched on (VER-11), which is good again once the setting is off or the address is verified', async () => {
    await h.put({ require_email_verification: 'false' })
    const [user, other] = [await addUnverified(h), await addUnverified(h)]
    const [agent, elsewhere] = [createUserAgent(), createUserAgent()]
    await h.signIn(agent, user.username)
    await h.signIn(elsewhere, other.username)
    await h.put({ require_email_verification: 'true' })
    for (const browser of [agent, elsewhere]) await expectLoginPage(browser)
    expect(user.mailCount()).to.equal(0)
    await h.put({ require_email_verification: 'false' })
    expect(await accountOf(h, agent)).to.equal(user.id)
    await h.put({ require_email_verification: 'true' })
    await other.becomes({ emailVerified: true })
    expect(await accountOf(h, elsewhere)).to.equal(other.id)
    await expectLoginPage(agent)
    await expectStillWorks(h, await blockedLogin(h, { user, agent }))
    expect(await accountOf(h, agent)).to.equal(user.id)
  })

  it('leads the session of an account that is disabled or deleted to the login page, and not to an error (SES-13)', async () => {
    const { owner, browser } = await signedIn(h)
    await owner.becomes({ disabled: true })
    await expectLoginPage(browser)
    await owner.becomes({ disabled: false })
    expect(await accountOf(h, browser)).to.equal(owner.id)
    deleted.add(owner.id)
    await expectLoginPage(browser)
  })
})

describe('A host that forgot finishLogin', () => {
  const h = suiteHarness({ usesHook: false })

  it('gets no code for an unverified user, however often the password is right', async () => {
    const user = await addUnverified(h)
    const agent = createUserAgent()
    for (const _time of [1, 2, 3]) {
      const back = await h.signIn(agent, user.username)
      expect([back.page, back.mode, back.location]).to.deep.equal(['login', 'login', undefined])
    }
    expect((await silently(h, agent)).get('error')).to.equal('login_required')
    expect(await user.isVerified()).to.equal(false)
  })

  it('gets one for a verified user, and for everybody once the setting is off', async () => {
    const verified = await addVerified(h)
    const agent = createUserAgent()
    expect((await h.signIn(agent, verified.username)).location).to.match(/[?&]code=/)
    await h.put({ require_email_verification: 'false' })
    const back = await h.signIn(createUserAgent(), (await addUnverified(h)).username)
    await h.put({ require_email_verification: 'true' })
    expect(back.location).to.match(/[?&]code=/)
  })
})
