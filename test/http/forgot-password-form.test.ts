import { expect } from 'chai'
import type { User } from '../../src/index.ts'
import { ask, usableRecord, withoutMail } from '../support/observe.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent, type Form } from '../support/user-agent.ts'

describe('The form of {oauth_path}/forgot-password', () => {
  const agent = createUserAgent()
  const h = suiteHarness()
  let ann: User
  let url: string

  before(async () => {
    ann = await h.addUser({ username: 'ann' })
    url = `${h.oauthUrl}/forgot-password`
  })

  const post = (form: Form) => agent.post(url, form)

  describe('GET renders the form (4.1)', () => {
    it('that posts an identifier to the same address', async () => {
      const page = await agent.get(url)
      expect(page.status).to.equal(200)
      expect([page.page, page.mode]).to.deep.equal(['forgot-password', 'form'])
      expect(page.text).to.match(/<form method="post" action="\/oauth2\/forgot-password">/)
      expect(page.text).to.match(/<input[^>]* name="identifier"/)
      expect(page.hidden).to.deep.equal({})
      expect(page.headers.getSetCookie()).to.deep.equal([])
    })

    it('and answers HEAD alike, without the page', async () => {
      const page = await agent.request('HEAD', url)
      expect([page.status, page.text]).to.deep.equal([200, ''])
    })
  })

  describe('carries redirect_uri, state, client_id and scope through (4.2)', () => {
    const genuine = {
      client_id: 'app',
      redirect_uri: 'https://app.example/cb',
      scope: 'openid email',
      state: 'a&b=c "d" \'e\' <f> ü',
    }

    /** Opens the form with these in the query, sends it, and answers what the token record holds. */
    async function carriedThrough(carried: Record<string, string>) {
      const page = await agent.get(`${url}?${new URLSearchParams(carried)}`)
      expect(page.hidden).to.deep.equal(carried)
      await ask(h, 'ann', page.hidden)
      const link = h.mail.mails.at(-1)?.link ?? ''
      expect([...new URL(link).searchParams.keys()]).to.deep.equal(['token'])
      return (await usableRecord(h, link))?.carried
    }

    it('from the query into hidden fields and into the token record', async () => {
      expect(await carriedThrough(genuine)).to.deep.equal({
        clientId: genuine.client_id,
        redirectUri: genuine.redirect_uri,
        scope: genuine.scope,
        state: genuine.state,
      })
    })

    it('and keeps an empty one apart from an absent one', async () => {
      const { client_id, redirect_uri } = genuine
      expect(await carriedThrough({ client_id, redirect_uri, state: '' })).to.deep.equal({
        clientId: client_id,
        redirectUri: redirect_uri,
        state: '',
      })
    })

    const foreign: Record<string, Record<string, string>> = {
      'an unregistered redirect URI': { ...genuine, redirect_uri: 'https://evil.example/cb' },
      'a redirect URI that only begins like it': {
        ...genuine,
        redirect_uri: `${genuine.redirect_uri}/../x`,
      },
      'a redirect URI of another client': {
        ...genuine,
        redirect_uri: 'https://server.example/cb',
      },
      'an unknown client': { ...genuine, client_id: 'nobody' },
      'a redirect URI without a client': { redirect_uri: genuine.redirect_uri, state: 's' },
      'a client without a redirect URI': { client_id: 'app', state: 's' },
      'a state alone': { state: 's' },
    }
    it('but drops them all where they are not genuine; the link is sent all the same', async () => {
      for (const [what, carried] of Object.entries(foreign)) {
        expect(await carriedThrough(carried), what).to.deep.equal({})
      }
    })

    it('but not one that the query repeats', async () => {
      const page = await agent.get(`${url}?client_id=app&client_id=server&state=s`)
      expect([page.status, page.mode]).to.deep.equal([200, 'form'])
      expect(page.hidden).to.deep.equal({})
    })
  })

  describe('refuses a form whose fields are not each exactly one string (D31, INJ)', () => {
    // Every other way is in test/attacks/injection.test.ts.
    const forms: Record<string, string> = {
      'no identifier': 'client_id=app',
      'an empty identifier': 'identifier=',
      'a repeated identifier': 'identifier=ann&identifier=nobody',
      'an identifier as an array': 'identifier[]=ann',
      'a repeated carried parameter': 'identifier=ann&state=a&state=b',
      'bytes that are not UTF-8': 'identifier=ann%FF',
    }
    it('such as those: 400, and no mail', async () => {
      for (const [what, form] of Object.entries(forms)) {
        const answer = await withoutMail(h, () => post(form))
        expect(answer.status, what).to.equal(400)
        expect(answer.mode, what).to.be.oneOf(['invalid', 'bad_request'])
      }
    })

    it('and says so on the form itself when the identifier is missing', async () => {
      const answer = await withoutMail(h, () => post({ identifier: '', state: 's' }))
      expect([answer.page, answer.mode]).to.deep.equal(['forgot-password', 'invalid'])
      expect(answer.hidden).to.deep.equal({ state: 's' })
    })

    it('and mails nobody else for a second identifier in brackets (GitLab CVE-2023-7028) (INJ-03)', async () => {
      await h.addUser({ username: 'mallory', email: 'mallory@evil.example' })
      await withoutMail(h, () => post('identifier[]=ann&identifier[]=mallory@evil.example'))
      const before = h.mail.mails.length
      expect((await ask(h, 'ann')).answer.mode).to.equal('sent')
      expect(h.mail.mails.slice(before).map(({ to }) => to)).to.deep.equal([[ann.email]])
    })
  })
})
