import { expect } from 'chai'
import {
  addUnverified,
  blockedLogin,
  changeUser,
  codeIn,
  expectOnlyVerified,
  expectResumed,
  isVerified,
  mailsTo,
  type BlockedLogin,
} from '../support/blocked-login.ts'
import { expectPage } from '../support/expect-page.ts'
import { CLIENT, CONFIDENTIAL, PASSWORD } from '../support/harness.ts'
import { isIdle, jobs } from '../support/jobs.ts'
import { createRelyingParty } from '../support/relying-party.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent, type UserAgent } from '../support/user-agent.ts'
import { expectMode, openElsewhere, pendingOf, windowOf } from '../support/waiting-window.ts'

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

  const statusesOf = async (logins: Pick<BlockedLogin, 'agent' | 'blocked'>[]) =>
    Promise.all(logins.map(async (login) => (await windowOf(h, login).reload()).mode))

  it('of one account the newest wait; a link whose login went verifies, and signs nobody in', async () => {
    const user = await addUnverified(h)
    const stranger = await blockedLogin(h)
    const logins: BlockedLogin[] = []
    for (let made = 0; made <= MOST; made += 1) logins.push(await blockedLogin(h, { user }))
    const [first, ...kept] = logins
    if (!first) throw new Error('no login was made')
    expect(await statusesOf(logins)).to.deep.equal(['ended', ...kept.map(() => 'blocked')])
    await expectOnlyVerified(h, first, await first.agent.get(first.link))
    for (const login of kept) expectMode(await windowOf(h, login).goOn(), 400, 'ended')
    await expectResumed(h, stranger, await openElsewhere(stranger))
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
    expect(mailsTo(h, user)).to.equal(0)
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
    await expectResumed(h, login, await openElsewhere(login))
    expectMode(await windowOf(h, elsewhere).goOn(), 400, 'ended')
  })

  it('the same request waits anew, as another login, once its account was ended', async () => {
    const login = await blockedLogin(h)
    const { user, agent } = login
    await h.flows.endSessions(user.id)
    expectMode(await windowOf(h, login).goOn(), 400, 'ended')
    const next = { ...login, blocked: await again(agent, user.username) }
    const { mail } = await h.mail.mailTo(user.email ?? '', 2)
    expect(windowOf(h, next).id).not.to.equal(windowOf(h, login).id)
    expectMode(await windowOf(h, login).goOn(), 400, 'ended')
    const code = codeIn(mail) ?? ''
    await expectResumed(h, login, await windowOf(h, next).goOn({ code }))
  })

  it('one that is posted again gets no other mail, and is finished by its link; another one is over by that', async () => {
    await h.put({ mails_per_account_per_hour: '1' })
    const user = await addUnverified(h)
    const login = await blockedLogin(h, { user })
    const repeated = await again(login.agent, user.username)
    const other = await block(user.username)
    await isIdle(h)
    expect(mailsTo(h, user)).to.equal(2)
    expect(windowOf(h, { ...login, blocked: repeated }).id).to.equal(windowOf(h, login).id)
    await expectResumed(h, login, await openElsewhere(login))
    expectMode(await windowOf(h, other).goOn(), 400, 'ended')
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
    expect(mailsTo(h, user)).to.equal(1)
    expect(await isVerified(h, user)).to.equal(false)
    const large = { ...small, agent, ...(await sized(15_500)) }
    expectPage(large.blocked, 200, 'verify-email', 'blocked')
    await changeUser(h, user, { emailVerified: true })
    await expectResumed(h, large, await windowOf(h, large).goOn())
    await expectResumed(h, small, await windowOf(h, small).goOn())
  })
})
