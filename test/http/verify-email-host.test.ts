import type { IncomingMessage } from 'node:http'
import { expect } from 'chai'
import { koaHost } from '../../examples/hosts/koa.ts'
import {
  addUnverified,
  blockedLogin,
  expectExpired,
  expectResumed,
  isVerified,
  resend,
} from '../support/blocked-login.ts'
import { CLIENT, CONFIDENTIAL } from '../support/harness.ts'
import { signedIn } from '../support/other-account.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent } from '../support/user-agent.ts'

const facts = ({ url, method, headers: { cookie } }: IncomingMessage) => ({ url, method, cookie })

describe('What the host sees of GET {oauth_path}/verify-email (4.6)', () => {
  const seen: { before: object; after: object }[] = []
  const h = suiteHarness({
    async host(parts) {
      const listener = koaHost(parts)
      return (req, res) => {
        const before = facts(req)
        res.on('finish', () => seen.push({ before, after: facts(req) }))
        return listener(req, res)
      }
    },
  })

  it('leaves address, method and cookies of the request as they came, whatever resumes the login', async () => {
    const [first, second] = [await blockedLogin(h), await blockedLogin(h)]
    const visited = createUserAgent()
    await visited.get(`${h.oauthUrl}/session/end`)
    const fresh = await resend(h, await addUnverified(h), {
      client_id: CONFIDENTIAL.client_id,
      redirect_uri: CONFIDENTIAL.redirect_uris[0],
      scope: 'openid',
    })
    const { browser } = await signedIn(h)
    const page = await browser.get(second.link)
    const form = { ...page.hidden, action: 'continue' }
    seen.length = 0
    const answers = [
      await createUserAgent().get(first.link),
      await visited.get(fresh),
      await browser.post(`${h.oauthUrl}/verify-email`, form),
    ]
    expect(answers.map(({ status }) => status)).to.deep.equal([302, 302, 302])
    expect(seen).to.have.length(3)
    for (const { before, after } of seen) expect(after).to.deep.equal(before)
    await expectResumed(h, second, answers[2] ?? page)
  })

  it('builds the link from the configured address, whatever Host and X-Forwarded-Host say', async () => {
    const headers = { 'x-forwarded-host': 'evil.example', forwarded: 'host=evil.example' }
    const login = await blockedLogin(h)
    const form = { username: login.user.username }
    await createUserAgent().post(`${h.oauthUrl}/resend-verification`, form, headers)
    const { link, mail } = await h.mail.mailTo(login.user.email ?? '', 2)
    expect(link.startsWith(`${h.oauthUrl}/verify-email?`)).to.equal(true)
    expect(`${mail.text}${String(mail.html)}`).to.not.include('evil.example')
    await expectResumed(h, login, await login.agent.get(login.link, headers))
    expectExpired(await createUserAgent().get(link))
  })
})

describe('Carried parameters longer than an address can be (4.6, 4.7)', () => {
  const h = suiteHarness()

  it('are not in the link of a blocked login, which finishes the request with all of them', async () => {
    const login = await blockedLogin(h, { extra: { state: 's'.repeat(10_000) } })
    expect(login.link.length).to.be.below(500)
    await expectResumed(h, login, await createUserAgent().get(login.link))
  })

  it('are not in the link of a stranger who asks for one, which verifies and leads nowhere', async () => {
    const carol = await addUnverified(h)
    const link = await resend(h, carol, {
      client_id: CLIENT.client_id,
      redirect_uri: CLIENT.redirect_uris[0],
      state: 's'.repeat(60_000),
    })
    expect(link.length).to.be.below(500)
    const agent = createUserAgent()
    const answer = await agent.get(link)
    expect([answer.status, answer.mode]).to.deep.equal([200, 'verified'])
    expect(agent.cookiesFor(h.oauthUrl)).to.equal('')
    expect(await isVerified(h, carol)).to.equal(true)
    expect((await h.signIn(createUserAgent(), carol.username)).location).to.include('code=')
  })
})
