import type { IncomingMessage } from 'node:http'
import { expect } from 'chai'
import { koaHost } from '../../examples/hosts/koa.ts'
import {
  addVerified,
  blockedLogin,
  expectExpired,
  expectResumed,
  isVerified,
  resend,
} from '../support/blocked-login.ts'
import { onBothStores } from '../support/both-stores.ts'
import { CONFIDENTIAL, startHarness, type Harness } from '../support/harness.ts'
import { createUserAgent } from '../support/user-agent.ts'

onBothStores('What the host sees of GET {oauth_path}/verify-email (4.6)', (technology) => {
  let harness: Harness
  let seen: { before: object; after: object }[] = []

  const facts = (req: IncomingMessage) => ({
    url: req.url,
    method: req.method,
    cookie: req.headers.cookie,
  })

  before(async () => {
    harness = await startHarness({
      technology,
      async host(parts) {
        const listener = koaHost(parts)
        return (req, res) => {
          const before = facts(req)
          res.on('finish', () => seen.push({ before, after: facts(req) }))
          return listener(req, res)
        }
      },
    })
  })
  after(() => harness.close())
  beforeEach(() => {
    seen = []
  })

  function expectUntouchedRequests(count: number) {
    expect(seen).to.have.length(count)
    for (const { before, after } of seen) expect(after).to.deep.equal(before)
  }

  it('leaves address, method and cookies of the request as they came, in a browser without cookies', async () => {
    const login = await blockedLogin(harness)
    seen = []
    await createUserAgent().get(login.link)
    expectUntouchedRequests(1)
  })

  it('leaves them as they came in a browser with cookies, and for a link that no login waits for', async () => {
    const login = await blockedLogin(harness)
    const agent = createUserAgent()
    await agent.get(`${harness.oauthUrl}/session/end`)
    const [redirect_uri] = CONFIDENTIAL.redirect_uris
    const carried = { client_id: CONFIDENTIAL.client_id, redirect_uri, scope: 'openid' }
    const link = await resend(harness, login.user, carried)
    seen = []
    expect((await agent.get(link)).status).to.equal(302)
    expectUntouchedRequests(1)
  })

  it('leaves them as they came after the answer to the question about another account', async () => {
    const login = await blockedLogin(harness)
    const agent = createUserAgent()
    await harness.signIn(agent, (await addVerified(harness)).username)
    const page = await agent.get(login.link)
    const form = { ...page.hidden, action: 'continue' }
    seen = []
    const answer = await agent.post(`${harness.oauthUrl}/verify-email`, form)
    expectUntouchedRequests(1)
    await expectResumed(harness, login, answer)
  })

  it('builds the link from the configured address, whatever Host and X-Forwarded-Host say', async () => {
    const headers = { 'x-forwarded-host': 'evil.example', forwarded: 'host=evil.example' }
    const login = await blockedLogin(harness)
    const before = harness.mail.mails.length
    const form = { username: login.user.username }
    await createUserAgent().post(`${harness.oauthUrl}/resend-verification`, form, headers)
    const { link, mail } = await harness.mail.mailTo(login.user.email ?? '', 2)
    expect(harness.mail.mails).to.have.length(before + 1)
    expect(link.startsWith(`${harness.oauthUrl}/verify-email?`)).to.equal(true)
    expect(`${mail.text}${String(mail.html)}`).to.not.include('evil.example')
    await expectResumed(harness, login, await login.agent.get(login.link, headers))
    expectExpired(await createUserAgent().get(link))
    expect(await isVerified(harness, login.user)).to.equal(true)
  })
})
