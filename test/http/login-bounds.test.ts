import { expect } from 'chai'
import { expectOnlyVerified } from '../support/blocked-login.ts'
import { expectPage } from '../support/expect-page.ts'
import { CLIENT, CONFIDENTIAL, PASSWORD } from '../support/harness.ts'
import { isIdle, jobs } from '../support/jobs.ts'
import { createRelyingParty } from '../support/relying-party.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent, type UserAgent } from '../support/user-agent.ts'
import { expectMode, pendingOf, windowOf } from '../support/waiting-window.ts'
import { addUnverified, blockedLogin, codeIn, type Person } from '../support/person.ts'

const MOST = 10

describe('Logins that wait for a link are few, and small (RATE-16)', () => {
  let isByScript = false
  const h = suiteHarness({
    clients: [CLIENT, CONFIDENTIAL],
    async finishLogin(req, res, login) {
      if (!isByScript) return h.flows.finishLogin(req, res, login)
      const decision = await h.flows.decideLogin(req, res, login)
      res.writeHead(200).end(JSON.stringify(decision))
    },
  })

  beforeEach(() => h.put({ mails_per_account_per_hour: '0', mails_per_minute: '0' }))

  /** Blocked, whether or not it gets a mail. */
  async function block(username: string, agent = createUserAgent(), party = h.party) {
    const request = await party.begin()
    const blocked = await h.login(agent, request.url, username)
    expectPage(blocked, 200, 'verify-email', 'blocked')
    return { agent, party, request, blocked }
  }

  const again = (agent: UserAgent, username: string) =>
    agent.post(`${h.oauthUrl}/login`, { username, password: PASSWORD })

  const statusesOf = async (logins: Person[]) =>
    Promise.all(logins.map(async (login) => (await login.reloads()).mode))

  it('of one account the newest wait; a link whose login went verifies, and signs nobody in', async () => {
    const user = await addUnverified(h)
    const stranger = await blockedLogin(h)
    const logins: Person[] = []
    for (let made = 0; made <= MOST; made += 1) logins.push(await blockedLogin(h, { user }))
    const [first, ...kept] = logins
    if (!first) throw new Error('no login was made')
    expect(await statusesOf(logins)).to.deep.equal(['ended', ...kept.map(() => 'blocked')])
    await first.isOnlyVerified(await first.agent.get(first.link))
    for (const login of kept) expectMode(await login.goesOn(), 400, 'ended')
    await stranger.comesBack(await stranger.opensElsewhere())
  })

  it('so does a link that is made when its login is gone', async () => {
    const user = await addUnverified(h)
    const party = await createRelyingParty(h.oauthUrl, {
      clientId: CONFIDENTIAL.client_id,
      redirectUri: CONFIDENTIAL.redirect_uris[0],
      clientSecret: CONFIDENTIAL.client_secret,
    })
    await h.put({ mails_per_minute: '1' })
    await blockedLogin(h)
    const login = await block(user.username, createUserAgent(), party)
    const window = windowOf(h, login)
    await h.store.pendingLogins.save({ ...(await pendingOf(h, window)), id: 'another' }, 1)
    expectMode(await window.reload(), 400, 'ended')
    expect(user.mailCount()).to.equal(0)
    await h.put({ mails_per_minute: '0' })
    const { link } = await h.mail.mailTo(user.email ?? '')
    expect(new URL(link).searchParams.get('state')).to.equal(login.request.state)
    const agent = createUserAgent()
    await expectOnlyVerified(h, { user, agent }, await agent.get(link))
  })

  it('the same request, posted again in its browser, stays one login', async () => {
    const user = await addUnverified(h)
    const elsewhere = await blockedLogin(h, { user })
    const login = await blockedLogin(h, { user })
    const { id } = windowOf(h, login)
    for (let posted = 0; posted <= MOST; posted += 1) {
      const blocked = await again(login.agent, user.username)
      expect(windowOf(h, { ...login, blocked }).id).to.equal(id)
    }
    expect(await statusesOf([elsewhere, login])).to.deep.equal(['blocked', 'blocked'])
    await login.comesBack(await login.opensElsewhere())
    expectMode(await elsewhere.goesOn(), 400, 'ended')
  })

  it('the same request waits anew, as another login, once its account was ended', async () => {
    const login = await blockedLogin(h)
    const { user, agent } = login
    await h.flows.endSessions(user.id)
    expectMode(await login.goesOn(), 400, 'ended')
    const next = { ...login, blocked: await again(agent, user.username) }
    const { mail } = await h.mail.mailTo(user.email ?? '', 2)
    expect(next.loginId()).not.to.equal(login.loginId())
    expectMode(await login.goesOn(), 400, 'ended')
    const code = codeIn(mail) ?? ''
    await login.comesBack(await next.goesOn({ code }))
  })

  it('one that is posted again gets no other mail, and is finished by its link; another one is over by that', async () => {
    await h.put({ mails_per_account_per_hour: '1' })
    const user = await addUnverified(h)
    const login = await blockedLogin(h, { user })
    const repeated = await again(login.agent, user.username)
    const other = await block(user.username)
    await isIdle(h)
    expect(user.mailCount()).to.equal(2)
    expect(windowOf(h, { ...login, blocked: repeated }).id).to.equal(login.loginId())
    await login.comesBack(await login.opensElsewhere())
    expectMode(await other.goesOn(), 400, 'ended')
  })

  it('a request that is too long to be kept is refused by a page, and nothing is written or mailed', async () => {
    const user = await addUnverified(h)
    const small = await blockedLogin(h, { user })
    const known = await jobs(h)
    const agent = createUserAgent()
    const sized = async (length: number) => {
      // The provider keeps it twice: among the parameters, and as a detail of its prompt.
      const request = await h.party.begin({ login_hint: 'x'.repeat(length) })
      const form = Object.fromEntries(request.url.searchParams)
      const { text } = await agent.post(`${h.oauthUrl}/request`, form)
      const { request_uri } = JSON.parse(text) as { request_uri: string }
      const query = new URLSearchParams({ client_id: CLIENT.client_id, request_uri })
      await h.follow(agent, await agent.get(`${h.oauthUrl}/auth?${query.toString()}`))
      return { request, blocked: await again(agent, user.username) }
    }
    const { blocked: refused } = await sized(16_500)
    expectPage(refused, 400, 'error', 'request_too_long')
    isByScript = true
    const { blocked: told } = await sized(16_500)
    isByScript = false
    expect(JSON.parse(told.text)).to.deep.equal({ blocked: { reason: 'request_too_long' } })
    await isIdle(h)
    expect(known).to.include.members(await jobs(h))
    expect(user.mailCount()).to.equal(1)
    expect(await user.isVerified()).to.equal(false)
    const large = { ...small, agent, ...(await sized(15_500)) }
    expectPage(large.blocked, 200, 'verify-email', 'blocked')
    await user.becomes({ emailVerified: true })
    await large.comesBack(await large.goesOn())
    await small.comesBack(await small.goesOn())
  })
})
