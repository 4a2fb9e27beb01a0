import { expect } from 'chai'
import {
  accountOf,
  addUnverified,
  addVerified,
  blockedLogin,
  changeUser,
  expectStillWorks,
  isVerified,
  mailsTo,
  silently,
} from '../support/blocked-login.ts'
import { onBothStores } from '../support/both-stores.ts'
import { startHarness, type Harness } from '../support/harness.ts'
import { createUserAgent, type UserAgent } from '../support/user-agent.ts'

/** Where an ordinary authorization request of a signed-in browser leads. */
async function authorize(harness: Harness, agent: UserAgent) {
  const { url } = await harness.party.begin()
  return harness.follow(agent, await agent.get(url))
}

onBothStores('require_email_verification on every path to a code (D18)', (technology) => {
  let harness: Harness

  before(async () => {
    harness = await startHarness({ technology })
  })
  after(() => harness.close())

  async function expectLoginPage(agent: UserAgent) {
    const page = await authorize(harness, agent)
    expect([page.status, page.page, page.mode]).to.deep.equal([200, 'login', 'login'])
    expect((await silently(harness, agent)).get('error')).to.equal('login_required')
  }

  it('holds for a session from before it was switched on (VER-11)', async () => {
    await harness.put({ require_email_verification: 'false' })
    const user = await addUnverified(harness)
    const agent = createUserAgent()
    await harness.signIn(agent, user.username)
    expect(await accountOf(harness, agent)).to.equal(user.id)

    await harness.put({ require_email_verification: 'true' })
    await expectLoginPage(agent)
    expect(mailsTo(harness, user)).to.equal(0)
    await expectStillWorks(harness, await blockedLogin(harness, { user, agent }))
    expect(await accountOf(harness, agent)).to.equal(user.id)
  })

  it('leaves that session good once the address is verified by other means, or the setting is off', async () => {
    await harness.put({ require_email_verification: 'false' })
    const user = await addUnverified(harness)
    const agent = createUserAgent()
    await harness.signIn(agent, user.username)
    await harness.put({ require_email_verification: 'true' })
    await expectLoginPage(agent)
    await harness.put({ require_email_verification: 'false' })
    expect(await accountOf(harness, agent)).to.equal(user.id)
    await harness.put({ require_email_verification: 'true' })
    await expectLoginPage(agent)
    await changeUser(harness, user, { emailVerified: true })
    expect(await accountOf(harness, agent)).to.equal(user.id)
  })

  it('leads the session of a disabled account to the login page, and not to an error (SES-13)', async () => {
    const user = await addVerified(harness)
    const agent = createUserAgent()
    await harness.signIn(agent, user.username)
    await changeUser(harness, user, { disabled: true })
    await expectLoginPage(agent)
    await changeUser(harness, user, { disabled: false })
    expect(await accountOf(harness, agent)).to.equal(user.id)
  })

  if (technology === 'mongodb') {
    it('leads the session of a deleted account to the login page', async () => {
      const user = await addVerified(harness)
      const agent = createUserAgent()
      await harness.signIn(agent, user.username)
      await harness.db?.collection<{ _id: string }>('users').deleteOne({ _id: user.id })
      await expectLoginPage(agent)
    })
  }
})

onBothStores('A host that forgot finishLogin (D18)', (technology) => {
  let harness: Harness

  before(async () => {
    harness = await startHarness({ technology, usesHook: false })
  })
  after(() => harness.close())

  it('gets no code for an unverified user, however often the password is right', async () => {
    const user = await addUnverified(harness)
    const agent = createUserAgent()
    for (const _time of [1, 2, 3]) {
      const back = await harness.signIn(agent, user.username)
      expect([back.page, back.mode, back.location]).to.deep.equal(['login', 'login', undefined])
    }
    expect((await silently(harness, agent)).get('error')).to.equal('login_required')
    expect(await isVerified(harness, user)).to.equal(false)
  })

  it('gets one for a verified user, and for everybody once the setting is off', async () => {
    const verified = await addVerified(harness)
    const agent = createUserAgent()
    expect((await harness.signIn(agent, verified.username)).location).to.match(/[?&]code=/)
    await harness.put({ require_email_verification: 'false' })
    const back = await harness.signIn(createUserAgent(), (await addUnverified(harness)).username)
    await harness.put({ require_email_verification: 'true' })
    expect(back.location).to.match(/[?&]code=/)
  })
})
