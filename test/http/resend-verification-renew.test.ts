import { expect } from 'chai'
import {
  blockedLogin,
  expectExpired,
  expectResumed,
  expectStillWorks,
  isVerified,
  mailsTo,
  type BlockedLogin,
} from '../support/blocked-login.ts'
import { CLIENT } from '../support/harness.ts'
import { jobs, later } from '../support/jobs.ts'
import { shapeOf } from '../support/observe.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent, type Form } from '../support/user-agent.ts'
import { expectTitle } from '../support/words.ts'

describe('POST {oauth_path}/resend-verification from a page of ours', () => {
  const h = suiteHarness()
  let url: string

  before(async () => {
    url = `${h.oauthUrl}/resend-verification`
  })

  const post = (form: Form) => createUserAgent().post(url, form)
  const fieldsOf = (link: string) => Object.fromEntries(new URL(link).searchParams)

  async function expiredLogin(): Promise<BlockedLogin> {
    const login = await blockedLogin(h)
    await later(h, 24 * 3_600_000)
    return login
  }

  async function isNotRenewedAs(reason: string, form: Form, login: BlockedLogin) {
    const mails = h.mail.mails.length
    const known = await jobs(h)
    const answer = await post(form)
    expectExpired(answer)
    expectTitle(answer, `verify-email.expired.${reason}.title`)
    expect(known).to.include.members(await jobs(h))
    expect(h.mail.mails.length).to.equal(mails)
    expect(await isVerified(h, login.user)).to.equal(reason === 'used')
  }

  describe('in the place of an expired link (D17)', () => {
    it('sends a new one without a name being typed, and it finishes the login that waits', async () => {
      const login = await expiredLogin()
      const page = await createUserAgent().get(login.link)
      expectTitle(page, 'verify-email.expired.expired.title')
      expect(page.hidden).to.deep.equal(fieldsOf(login.link))
      const sent = await post(page.hidden)
      expect(shapeOf(sent)).to.deep.equal(shapeOf(await post({ username: 'nobody' })))
      const { link } = await h.mail.mailTo(login.user.email ?? '', 2)
      await expectResumed(h, { ...login, link }, await createUserAgent().get(link))
      await isNotRenewedAs('used', fieldsOf(login.link), login)
    })

    it('sends none for what is not genuine in every character, and the link still does its work', async () => {
      const login = await expiredLogin()
      const genuine = fieldsOf(login.link)
      const { authorize_sig: signature = '', token = '' } = genuine
      const changed: Form[] = [
        { ...genuine, token: 'A'.repeat(43) },
        { ...genuine, authorize_sig: `${signature.slice(0, -1)}_` },
        { ...genuine, state: 'another' },
        { ...genuine, 'scope[]': 'openid' },
        { token, authorize_sig: signature },
        { token },
      ]
      for (const form of changed) await isNotRenewedAs('unknown', form, login)
      const repeated = await post(`${new URLSearchParams(genuine)}&token=${token}`)
      expect([repeated.status, repeated.mode]).to.deep.equal([400, 'bad_request'])
      expect(mailsTo(h, login.user)).to.equal(1)
      expect((await post(genuine)).mode).to.equal('sent')
      const { link } = await h.mail.mailTo(login.user.email ?? '', 2)
      await expectStillWorks(h, { ...login, link })
    })
  })

  describe('with the window that waits (D15)', () => {
    const status = async ({ agent }: BlockedLogin, id: string) =>
      (await agent.get(`${h.oauthUrl}/verify-email/status?login=${id}`)).text

    it('keeps it waiting, and that may lead to its client alone', async () => {
      const login = await blockedLogin(h)
      const { login: id = '', ...form } = login.blocked.hidden
      expect(id).to.match(/^[A-Za-z0-9_-]{22}$/)
      const sent = await login.agent.post(url, { ...form, login: id })
      expect([sent.status, sent.mode]).to.deep.equal([200, 'sent'])
      expect(sent.hidden['login']).to.equal(id)
      expect(sent.headers.get('content-security-policy')).to.include("form-action 'self' https:;")
      expect(await status(login, id)).to.equal('{"status":"waiting"}')
      const { link } = await h.mail.mailTo(login.user.email ?? '', 2)
      await createUserAgent().get(link)
      expect(await status(login, id)).to.equal('{"status":"verified"}')
      const { location = '' } = await login.agent.post(`${h.oauthUrl}/verify-email/waiting`, {
        login: id,
      })
      const tokens = await login.party.exchange(login.request, location)
      expect(tokens.claims()?.sub).to.equal(login.user.id)
    })

    it('is the same page whatever name was typed, and tells nothing without the cookie', async () => {
      const login = await blockedLogin(h)
      const id = login.blocked.hidden['login'] ?? ''
      const pages = []
      for (const username of [login.user.username, 'nobody', 'n'.repeat(300)]) {
        pages.push(shapeOf(await post({ username, login: id })))
      }
      expect(pages[1]).to.deep.equal(pages[0])
      expect(pages[2]).to.deep.equal(pages[0])
      const stranger = await createUserAgent().get(`${h.oauthUrl}/verify-email/status?login=${id}`)
      expect(stranger.text).to.equal('{"status":"ended"}')
      await expectStillWorks(h, login)
    })

    it('ignores what is no id, and leads to no address that is not genuine', async () => {
      const username = 'nobody'
      const plain = shapeOf(await post({ username }))
      for (const login of [
        '',
        'x',
        'a'.repeat(21),
        'a'.repeat(23),
        `${'a'.repeat(21)}"`,
        '../..',
      ]) {
        expect(shapeOf(await post({ username, login }))).to.deep.equal(plain)
      }
      const { headers } = await post({
        username,
        login: 'a'.repeat(22),
        client_id: CLIENT.client_id,
        redirect_uri: 'https://evil.example/cb',
      })
      expect(headers.get('content-security-policy')).to.include("form-action 'self';")
    })
  })
})
