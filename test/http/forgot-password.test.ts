import { expect } from 'chai'
import type { AdapterFactory } from 'oidc-provider'
import { expectPage, withoutId, createUserAgent } from '../support/user-agent.ts'
import { CLIENT, onEachStore, suiteHarness } from '../support/harness.ts'
import { ask, sha256, shapeOf, usableRecord } from '../support/observe.ts'
import { dump } from '../support/records.ts'
import { tokenOf } from '../support/person.ts'
import { FORM, rawRequest } from '../support/raw-request.ts'
import { words } from '../support/words.ts'

// That it is the same for everybody is in test/secrecy/same-work.test.ts; who is meant, in test/attacks/identity.test.ts.
describe('POST {oauth_path}/forgot-password shows the success message (4.2.1)', () => {
  const h = suiteHarness()

  it('a page that says that a mail was sent if there is such an account', async () => {
    const answer = await h.forgot('nobody-at-all')
    expectPage(answer, 200, 'forgot-password', 'sent')
    expect(answer.text).to.include(words['forgot-password.sent.lead'])
  })

  it('while SMTP is not configured too; the mail leaves once it is (SET-11)', async () => {
    const user = await h.addVerified()
    const expected = shapeOf(await h.forgot('nobody-at-all'))
    await h.put({ smtp_host: '' })
    // Both are answered while no mail can leave.
    expect(shapeOf(await h.forgot('nobody-at-all'))).to.deep.equal(expected)
    expect(shapeOf(await h.forgot(user.username))).to.deep.equal(expected)
    await h.put({ smtp_host: '127.0.0.1' })
    await user.mail(1)
  })
})

onEachStore('A reset token of POST {oauth_path}/forgot-password', (technology) => {
  const h = suiteHarness({ technology })

  it('and stores only its SHA-256 in lower-case hex; the raw token is nowhere (5.5, TOK-02)', async () => {
    const { user, link } = await h.userWithLink()
    const token = tokenOf(link)
    const record = await usableRecord(h, link)
    expect(record).to.include({ userId: user.id, email: user.email })
    // It is found by its hash, and by nothing else of it.
    const { resetTokens } = h.store
    expect(await resetTokens.find(sha256(token))).to.deep.equal(record)
    expect(await resetTokens.find(token)).to.equal(undefined)
    const stored = await dump(h)
    const bytes = Buffer.from(token, 'base64url')
    for (const form of [token, bytes.toString('hex'), bytes.toString('base64')]) {
      expect(stored).not.to.include(form)
    }
    if (h.database) expect(stored).to.include(sha256(token))
  })

  it('and leaves exactly one live when 20 requests arrive at once (RACE-03, ENU-13)', async () => {
    await h.addUser({ username: 'busy' })
    const all = await Promise.all(Array.from({ length: 20 }, () => ask(h, 'busy')))
    const shapes = all.map(({ answer }) => JSON.stringify(shapeOf(answer)))
    expect(new Set(shapes)).to.have.property('size', 1)
    expect(all[0]?.answer.mode).to.equal('sent')
    const mails = h.mail.mails.filter(({ to }) => to.includes('busy@users.example'))
    const usable: string[] = []
    for (const { link } of mails) if (await usableRecord(h, link)) usable.push(link)
    expect(usable).to.have.length(1)
    expect((await h.reset(usable[0] ?? '', 'a new password')).mode).to.equal('done')
  })
})

describe('The form of {oauth_path}/forgot-password', () => {
  const agent = createUserAgent()
  const h = suiteHarness()
  let url: string

  before(async () => {
    await h.addUser({ username: 'ann' })
    url = `${h.oauthUrl}/forgot-password`
  })

  it('posts an identifier to the same address; HEAD is answered alike, without the page (4.1)', async () => {
    const page = await agent.get(url)
    expectPage(page, 200, 'forgot-password', 'form')
    expect(page.text).to.match(/<form method="post" action="\/oauth2\/forgot-password">/)
    expect(page.text).to.match(/<input[^>]* name="identifier"/)
    expect(withoutId(page.hidden)).to.deep.equal({})
    expect(page.headers.getSetCookie()).to.deep.equal([])
    const head = await agent.request('HEAD', url)
    expect([head.status, head.text]).to.deep.equal([200, ''])
  })

  const genuine = {
    client_id: 'app',
    redirect_uri: 'https://app.example/cb',
    scope: 'openid email',
    state: 'a&b=c "d" \'e\' <f> ü',
  }

  /** Opens the form with these in the query, sends it, and answers what the token record holds. */
  async function carriedThrough(parameters: Record<string, string>) {
    const page = await agent.get(`${url}?${new URLSearchParams(parameters)}`)
    expect(withoutId(page.hidden)).to.deep.equal(parameters)
    await ask(h, 'ann', page.hidden)
    const link = h.mail.mails.at(-1)?.link ?? ''
    expect([...new URL(link).searchParams.keys()]).to.deep.equal(['token'])
    return (await usableRecord(h, link))?.parameters
  }

  it('carries redirect_uri, state, client_id and scope from the query into hidden fields and into the token record', async () => {
    expect(await carriedThrough(genuine)).to.deep.equal({
      clientId: genuine.client_id,
      redirectUri: genuine.redirect_uri,
      scope: genuine.scope,
      state: genuine.state,
    })
  })

  it('carries them, and keeps an empty one apart from an absent one', async () => {
    const { client_id, redirect_uri } = genuine
    expect(await carriedThrough({ client_id, redirect_uri, state: '' })).to.deep.equal({
      clientId: client_id,
      redirectUri: redirect_uri,
      state: '',
    })
  })

  const led = (redirect_uri: string) => ({ ...genuine, redirect_uri })
  const foreign: Record<string, Record<string, string>> = {
    'an unregistered redirect URI': led('https://evil.example/cb'),
    'a redirect URI that only begins like it': led(`${genuine.redirect_uri}/../x`),
    'a redirect URI of another client': led('https://server.example/cb'),
    'an unknown client': { ...genuine, client_id: 'nobody' },
    'a redirect URI without a client': { redirect_uri: genuine.redirect_uri, state: 's' },
    'a client without a redirect URI': { client_id: 'app', state: 's' },
    'a state alone': { state: 's' },
  }
  it('carries none where they are not all genuine; the link is sent all the same', async () => {
    for (const [what, parameters] of Object.entries(foreign)) {
      expect(await carriedThrough(parameters), what).to.deep.equal({})
    }
  })

  it('carries none that the query repeats', async () => {
    const page = await agent.get(`${url}?client_id=app&client_id=server&state=s`)
    expect([page.status, page.mode]).to.deep.equal([200, 'form'])
    expect(withoutId(page.hidden)).to.deep.equal({})
  })

  it('reads a url-encoded form of at most 64 KiB, with a charset or without, announced or in pieces', async () => {
    // Answered like any other, and never looked up: nothing is left to wait for.
    const sized = (size: number) => `identifier=${'n'.repeat(300)}&x=`.padEnd(size, 'x')
    const charset = { 'content-type': `${FORM}; charset=UTF-8` }
    expect((await agent.post(url, sized(400), charset)).mode).to.equal('sent')
    expect((await agent.post(url, sized(65_536))).mode).to.equal('sent')
    const large = await rawRequest(url, { body: sized(65_537), isChunked: true })
    expect([large.status, large.mode]).to.deep.equal([413, 'body_too_large'])
  })
})

describe('{oauth_path}/forgot-password as a part of a sign-in', () => {
  const agent = createUserAgent()
  let registered: AdapterFactory | undefined
  const h = suiteHarness({ adapter: (given) => (registered = given) })

  it('shows the logo of the client, where that is on our own origin, and loads no other', async () => {
    const own = `${h.baseUrl}/logo.svg`
    const logos: Record<string, boolean> = {
      [own]: true,
      'https://app.example/logo.svg': false,
      [own.replace('127.0.0.1', 'localhost')]: false,
      [own.replace('http:', 'https:')]: false,
      [own.replace('//', '//127.0.0.1@evil.example/')]: false,
    }
    for (const [logo_uri, isShown] of Object.entries(logos)) {
      const client_id = `with ${logo_uri}`
      const metadata = { ...CLIENT, client_id, client_name: 'The Logo', logo_uri }
      await registered?.('Client').upsert(client_id, metadata, 3_600)
      const query = new URLSearchParams({ client_id, redirect_uri: CLIENT.redirect_uris[0] })
      const { text } = await agent.get(`${h.oauthUrl}/forgot-password?${query}`)
      expect(text).to.include('The Logo')
      const images = [...text.matchAll(/<img[^>]*src="([^"]*)"/g)].map(([, src]) => src)
      expect(images).to.deep.equal(isShown ? [logo_uri] : [])
    }
  })

  it('speaks the language of the browser where the request has none, or more than one', async () => {
    for (const query of ['', 'ui_locales=', 'ui_locales=x', 'ui_locales=de&ui_locales=de']) {
      const url = `${h.oauthUrl}/forgot-password?${query}`
      const page = await agent.get(url, { 'accept-language': 'fr' })
      expect([page.status, page.mode]).to.deep.equal([200, 'form'])
      expect(page.text).to.include('lang="fr"')
    }
  })
})
