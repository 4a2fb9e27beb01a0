import { expect } from 'chai'
import { blockedLogin, expectResumed } from '../support/blocked-login.ts'
import { startHarness, type Harness } from '../support/harness.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { openElsewhere, windowOf } from '../support/waiting-window.ts'

describe('The window that waits, and limits (D15, D21)', () => {
  let h: Harness

  before(async () => {
    h = await startHarness({ flows: { trustedProxies: 1 } })
  })
  after(() => h.close())

  it('is not counted by network, as it posts by itself, and others are all the same', async () => {
    const login = await blockedLogin(h)
    await h.put({ requests_per_ip_per_minute: '2' })
    const from = { 'x-forwarded-for': '192.0.2.1' }
    const window = windowOf(h, login)
    for (let time = 0; time < 5; time += 1) {
      const answer = await window.goOn({}, from)
      expect([answer.status, answer.mode]).to.deep.equal([200, 'blocked'])
    }
    const forgot = `${h.oauthUrl}/forgot-password`
    const statuses: number[] = []
    for (let time = 0; time < 3; time += 1) {
      const { status } = await createUserAgent().post(forgot, { identifier: 'nobody' }, from)
      statuses.push(status)
    }
    expect(statuses).to.deep.equal([200, 200, 429])
    await openElsewhere(login)
    await expectResumed(h, login, await window.goOn({}, from))
    await h.put({ requests_per_ip_per_minute: '60' })
  })

  it('leads to its client from every page that it is on, however long the request of the client is', async () => {
    const state = 's'.repeat(4_100)
    const login = await blockedLogin(h, { extra: { state } })
    const form = { username: login.user.username, ...login.blocked.hidden }
    const sent = await login.agent.post(`${h.oauthUrl}/resend-verification`, form)
    expect(sent.mode).to.equal('sent')
    for (const { headers } of [login.blocked, sent]) {
      expect(headers.get('content-security-policy')).to.include("form-action 'self' https:;")
    }
    const foreign = { ...form, redirect_uri: 'com.evil.app:/cb' }
    const other = await login.agent.post(`${h.oauthUrl}/resend-verification`, foreign)
    expect(other.headers.get('content-security-policy')).to.include("form-action 'self';")
    await openElsewhere(login)
    await expectResumed(h, login, await windowOf(h, login).goOn())
  })
})
