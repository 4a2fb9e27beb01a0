import { expect } from 'chai'
import { expectExpired, expectNothingChanged } from '../support/blocked-login.ts'
import { onBothStores } from '../support/both-stores.ts'
import { eventually } from '../support/eventually.ts'
import { CLIENT, type Harness, PASSWORD } from '../support/harness.ts'
import { isIdle } from '../support/jobs.ts'
import { ask } from '../support/observe.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { expectMode } from '../support/waiting-window.ts'
import { addUnverified, blockedLogin, type Person, tokenOf } from '../support/person.ts'

const NEW = 'a new password'

interface Mailed {
  login: Person
  /** Another login, whose link and window nobody touches. */
  other: Person
  reset: string
  /** Asked for by name: no login waits for it. */
  loose: string
}

onBothStores('What an account was mailed before it was disabled (TOK-25)', (technology) => {
  const h: Harness = suiteHarness({ technology })

  async function mailed(): Promise<Mailed> {
    const user = await addUnverified(h)
    const login = await blockedLogin(h, { user })
    const other = await blockedLogin(h, { user })
    const carried = {
      client_id: CLIENT.client_id,
      redirect_uri: CLIENT.redirect_uris[0],
      state: 's',
    }
    const loose = await user.asksAgain(carried)
    const before = user.mailCount()
    await h.forgot(user.username)
    return { login, other, loose, reset: (await h.mail.mailTo(user.email ?? '', before + 1)).link }
  }

  async function expectAllDead({ login, other, reset, loose }: Mailed) {
    const { user } = login
    const agent = createUserAgent()
    expectMode(await login.goesOn(), 400, 'ended')
    expectMode(await other.goesOn(), 400, 'ended')
    for (const link of [login.link, other.link, loose]) {
      const page = await agent.get(link)
      expectExpired(page)
      await expectNothingChanged(h, { user, agent }, page)
    }
    expect((await agent.get(reset)).mode).to.equal('invalid')
    expect((await h.reset(reset, NEW)).mode).to.equal('invalid')
    expect(await user.hasPassword(PASSWORD)).to.equal(true)
    // However the address comes to be verified, no login from before goes on.
    await user.becomes({ emailVerified: true })
    expectMode(await other.goesOn(), 400, 'ended')
    await user.becomes({ emailVerified: false })
  }

  async function expectNewOnesWork({ login: { user } }: Mailed) {
    const fresh = await blockedLogin(h, { user })
    await fresh.comesBack(await createUserAgent().get(fresh.link))
    expect((await h.reset(await user.forgets(), NEW)).mode).to.equal('done')
  }

  const agent = createUserAgent()
  const meetings: Record<string, (all: Mailed) => Promise<unknown>> = {
    'its reset link was opened': ({ reset }) => agent.get(reset),
    'a password was posted with its reset link': ({ reset }) => h.reset(reset, NEW),
    'a new reset link was asked for with it': ({ reset }) =>
      agent.post(`${h.oauthUrl}/forgot-password`, { token: tokenOf(reset) }),
    'one of its verification links was opened': ({ login }) => agent.get(login.link),
    'that without a login was fetched ahead': ({ loose }) =>
      agent.get(loose, { 'sec-purpose': 'prefetch' }),
    'one of its windows was reloaded': ({ login }) => login.reloads(),
    'somebody asked for its reset link': ({ login }) => ask(h, login.username),
    'somebody asked for its verification link': async ({ login: { user } }) => {
      const form = { username: user.username }
      await agent.post(`${h.oauthUrl}/resend-verification`, form)
      await isIdle(h)
    },
    'the host ended everything of the account': ({ login }) => h.flows.endSessions(login.id),
  }
  for (const [what, meet] of Object.entries(meetings)) {
    it(`stays dead once it is enabled again, where meanwhile ${what}`, async () => {
      const all = await mailed()
      await all.login.becomes({ disabled: true })
      await meet(all)
      await all.login.becomes({ disabled: false })
      await expectAllDead(all)
      await expectNewOnesWork(all)
    })
  }

  it('and a mail that was on its way meanwhile brings no link that works, where the host ended everything', async () => {
    const user = await addUnverified(h)
    h.mail.fallSilent()
    await h.forgot(user.username)
    await eventually('the worker waits for the mail server', () => h.mail.mostOpen() > 0)
    await user.becomes({ disabled: true })
    await h.flows.endSessions(user.id)
    h.mail.speak()
    await isIdle(h)
    await user.becomes({ disabled: false })
    expect(user.mailCount()).to.equal(0)
    expect((await h.reset(await user.forgets(), NEW)).mode).to.equal('done')
  })

  it('leaves what other accounts were mailed as it is', async () => {
    const [one, another] = [await mailed(), await mailed()]
    await one.login.becomes({ disabled: true })
    await agent.get(one.reset)
    await another.login.comesBack(await createUserAgent().get(another.login.link))
    expect((await h.reset(another.reset, NEW)).mode).to.equal('done')
  })
})
