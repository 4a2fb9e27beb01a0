import { expect } from 'chai'
import { ADMIN_TOKEN } from '../support/harness.ts'
import { machineToken, offlineTokens } from '../support/oauth-requests.ts'
import { eventsOf } from '../support/observe.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { suiteHarness } from '../support/suite-harness.ts'

const EVIL = 'https://evil.example'

describe('The admin API, from where it must not be reached (5.1)', () => {
  const h = suiteHarness()

  const admin = (init: RequestInit = {}) => fetch(`${h.baseUrl}/admin/api/settings`, init)
  const good = JSON.stringify({ email_verification_expiration: '5h' })
  const json = { 'content-type': 'application/json' }

  async function isUnchanged() {
    const response = await admin({ headers: { authorization: `Bearer ${ADMIN_TOKEN}` } })
    expect(response.status).to.equal(200)
    expect(await response.json()).to.include({ email_verification_expiration: '24h' })
  }

  async function tokensOfOAuth(): Promise<string[]> {
    const user = await h.addUser({ username: 'reader' })
    const tokens = await offlineTokens(h, createUserAgent(), user)
    return [tokens.access_token, tokens.id_token ?? '', await machineToken(h)]
  }

  it('takes no token of OAuth 2.0, of a user or of a client (ADM-09)', async () => {
    for (const token of await tokensOfOAuth()) {
      expect(token).to.be.a('string').and.not.equal('')
      const headers = { ...json, authorization: `Bearer ${token}` }
      const before = eventsOf(h, 'admin_auth_failed').length
      expect((await admin({ headers })).status).to.equal(401)
      expect((await admin({ method: 'PUT', headers, body: good })).status).to.equal(401)
      const events = eventsOf(h, 'admin_auth_failed').slice(before)
      expect(events.map(({ reason }) => reason)).to.deep.equal(['wrong_token', 'wrong_token'])
      expect(JSON.stringify(events)).not.to.include(token)
    }
    await isUnchanged()
  })

  it('lets no page of another site read or change anything, with whatever cookies (ADM-10)', async () => {
    const agent = createUserAgent()
    await h.addUser({ username: 'somebody' })
    await h.signIn(agent, 'somebody')
    const cookie = agent.cookiesFor(`${h.baseUrl}/admin/api/settings`)
    const from = { origin: EVIL, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors' }
    const asked = {
      'access-control-request-method': 'PUT',
      'access-control-request-headers': 'authorization, content-type',
    }
    const bearer = { authorization: `Bearer ${ADMIN_TOKEN}` }
    for (const [init, status] of [
      [{ method: 'OPTIONS', headers: { ...from, ...asked } }, 401],
      [{ method: 'OPTIONS', headers: { ...from, ...asked, ...bearer } }, 405],
      [{ headers: { ...from, cookie } }, 401],
      [{ method: 'PUT', headers: { ...from, ...json, cookie }, body: good }, 401],
      [{ headers: { ...from, ...bearer } }, 200],
    ] as const) {
      const response = await admin(init)
      expect(response.status).to.equal(status)
      const names = [...response.headers.keys()]
      expect(names.filter((name) => name.startsWith('access-control-'))).to.deep.equal([])
      expect(response.headers.has('set-cookie')).to.equal(false)
    }
    await isUnchanged()
  })
})
