import { once } from 'node:events'
import { request } from 'node:http'
import { expect } from 'chai'
import type { User } from '../../src/index.ts'
import { onBothStores } from '../support/both-stores.ts'
import { startHarness, type Harness } from '../support/harness.ts'
import { ask, shapeOf, tokenOf, usableRecord, withoutMail } from '../support/observe.ts'
import { createUserAgent, type Form } from '../support/user-agent.ts'

const FORM = 'application/x-www-form-urlencoded'
const LIMIT = 65_536

onBothStores('The form of {oauth_path}/forgot-password', (technology) => {
  const agent = createUserAgent()
  let h: Harness
  let ann: User
  let url: string

  before(async () => {
    h = await startHarness({ technology })
    ann = await h.addUser({ username: 'ann' })
    url = `${h.oauthUrl}/forgot-password`
  })

  after(() => h.close())

  // Whatever was refused before, an honest request still works.
  afterEach(async () => {
    const before = h.mail.mails.length
    expect((await ask(h, 'ann')).answer.mode).to.equal('sent')
    expect(h.mail.mails.slice(before).map(({ to }) => to)).to.deep.equal([[ann.email]])
  })

  const post = (form: Form, headers?: Record<string, string>) => agent.post(url, form, headers)

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

    it('with headers against framing, storing, sniffing and leaking (HDR)', async () => {
      const { headers } = await agent.get(url)
      expect(headers.get('cache-control')).to.equal('no-store')
      expect(headers.get('referrer-policy')).to.equal('no-referrer')
      expect(headers.get('x-content-type-options')).to.equal('nosniff')
      expect(headers.get('x-robots-tag')).to.equal('noindex')
      expect(headers.get('content-security-policy')).to.include("frame-ancestors 'none'")
      expect(headers.get('content-security-policy')).not.to.include('unsafe-inline')
      for (const name of ['etag', 'server', 'x-powered-by'])
        expect(headers.has(name)).to.equal(false)
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
    for (const [what, carried] of Object.entries(foreign)) {
      it(`but drops them all for ${what}; the link is sent all the same`, async () => {
        expect(await carriedThrough(carried)).to.deep.equal({})
      })
    }

    it('as text, never as markup', async () => {
      const state = '"><script>alert(1)</script><input name="identifier" value="'
      const page = await agent.get(`${url}?${new URLSearchParams({ ...genuine, state })}`)
      expect(page.hidden['state']).to.equal(state)
      expect(page.text).not.to.include('<script')
    })

    it('but not one that the query repeats', async () => {
      const page = await agent.get(`${url}?client_id=app&client_id=server&state=s`)
      expect([page.status, page.mode]).to.deep.equal([200, 'form'])
      expect(page.hidden).to.deep.equal({})
    })
  })

  describe('refuses a form whose fields are not each exactly one string (D31, INJ)', () => {
    const forms: Record<string, string> = {
      'no identifier': 'client_id=app',
      'an empty form': '',
      'an empty identifier': 'identifier=',
      'a repeated identifier': 'identifier=ann&identifier=nobody',
      'an identifier as an array': 'identifier[]=ann',
      'an identifier as an operator': 'identifier[$ne]=x',
      'an encoded operator': 'identifier%5B%24regex%5D=.*',
      'an identifier as a property of an object': 'identifier.$ne=x',
      'a repeated carried parameter': 'identifier=ann&state=a&state=b',
      'bytes that are not UTF-8': 'identifier=ann%FF',
      'a lone surrogate': 'identifier=ann%ED%A0%80',
      'a broken escape': 'identifier=ann%',
      'a polluted prototype': '__proto__[identifier]=ann&constructor[prototype][identifier]=ann',
    }
    for (const [what, form] of Object.entries(forms)) {
      it(`such as ${what}: 400, and no mail`, async () => {
        const answer = await withoutMail(h, () => post(form))
        expect(answer.status).to.equal(400)
        expect(answer.mode).to.be.oneOf(['invalid', 'bad_request'])
      })
    }

    it('and says so on the form itself when the identifier is missing', async () => {
      const answer = await withoutMail(h, () => post({ identifier: '', state: 's' }))
      expect([answer.page, answer.mode]).to.deep.equal(['forgot-password', 'invalid'])
      expect(answer.hidden).to.deep.equal({ state: 's' })
    })

    it('and mails nobody else for a second identifier in brackets (GitLab CVE-2023-7028)', async () => {
      await h.addUser({ username: `mallory`, email: 'mallory@evil.example' })
      await withoutMail(h, () => post('identifier[]=ann&identifier[]=mallory@evil.example'))
    })
  })

  describe('reads nothing but a url-encoded form of at most 64 KiB (D31)', () => {
    const bodies: Record<string, [type: string | undefined, body: string]> = {
      JSON: ['application/json', '{"identifier":"ann"}'],
      'JSON with an operator': ['application/json', '{"identifier":{"$ne":""}}'],
      multipart: [
        'multipart/form-data; boundary=b',
        '--b\r\nContent-Disposition: form-data; name="identifier"\r\n\r\nann\r\n--b--\r\n',
      ],
      'plain text': ['text/plain', 'identifier=ann'],
      'no type': [undefined, 'identifier=ann'],
      'a type that only begins like it': [`${FORM}x`, 'identifier=ann'],
    }
    for (const [what, [type, body]] of Object.entries(bodies)) {
      it(`so that ${what} is 415, and no mail`, async () => {
        const answer = await withoutMail(h, () =>
          agent.request('POST', url, {
            headers: type === undefined ? {} : { 'content-type': type },
            body: Buffer.from(body),
          }),
        )
        expect([answer.status, answer.mode]).to.deep.equal([415, 'unsupported_media_type'])
      })
    }

    it('and takes a charset in its type', async () => {
      const answer = await post('identifier=nobody', { 'content-type': `${FORM}; charset=UTF-8` })
      expect([answer.status, answer.mode]).to.deep.equal([200, 'sent'])
    })

    const sized = (size: number) => 'identifier=nobody&x='.padEnd(size, 'x')

    it('and takes exactly 64 KiB', async () => {
      const answer = await post(sized(LIMIT))
      expect([answer.status, answer.mode]).to.deep.equal([200, 'sent'])
    })

    it('and refuses one byte more, announced or not', async () => {
      const announced = await withoutMail(h, () => post(sized(LIMIT + 1)))
      expect([announced.status, announced.mode]).to.deep.equal([413, 'body_too_large'])
      const streamed = await withoutMail(h, () => raw(h, { chunked: sized(LIMIT + 1) }))
      expect(streamed.status).to.equal(413)
    })
  })

  describe('answers no other method', () => {
    for (const method of ['PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      it(`so that ${method} is 405 and says which are allowed`, async () => {
        const answer = await withoutMail(h, () =>
          agent.request(method, url, {
            headers: { 'content-type': FORM, 'x-http-method-override': 'POST' },
            ...(method !== 'OPTIONS' && { body: 'identifier=ann' }),
          }),
        )
        expect([answer.status, answer.mode]).to.deep.equal([405, 'method_not_allowed'])
        expect(answer.headers.get('allow')).to.equal('GET, HEAD, POST')
      })
    }
  })

  describe('refuses forms that another site posts (D31)', () => {
    const refused: Record<string, Record<string, string>> = {
      'Sec-Fetch-Site: cross-site': { 'sec-fetch-site': 'cross-site' },
      'Sec-Fetch-Site: same-site': { 'sec-fetch-site': 'same-site' },
      'cross-site with our own origin': { 'sec-fetch-site': 'cross-site', origin: 'OWN' },
      'a foreign origin': { origin: 'https://evil.example' },
      'a foreign origin that claims same-origin': {
        origin: 'https://evil.example',
        'sec-fetch-site': 'same-origin',
      },
      'our origin with a suffix': { origin: 'OWN.evil.example' },
      'our host under another scheme': { origin: 'HTTPS' },
      'our host without its port': { origin: 'http://127.0.0.1' },
      'Origin: null': { origin: 'null' },
      'Origin: null from another site': { origin: 'null', 'sec-fetch-site': 'cross-site' },
      'Origin: null of a typed address': { origin: 'null', 'sec-fetch-site': 'none' },
    }
    const accepted: Record<string, Record<string, string>> = {
      'neither header': {},
      'our own origin': { origin: 'OWN' },
      'our own origin, same-origin': { origin: 'OWN', 'sec-fetch-site': 'same-origin' },
      'Origin: null, same-origin: our own pages': {
        origin: 'null',
        'sec-fetch-site': 'same-origin',
      },
    }
    const filled = (headers: Record<string, string>) =>
      Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [
          name,
          value.replace('OWN', h.baseUrl).replace('HTTPS', h.baseUrl.replace('http:', 'https:')),
        ]),
      )

    for (const [what, headers] of Object.entries(refused)) {
      it(`such as ${what}: 403, and no mail`, async () => {
        const answer = await withoutMail(h, () => raw(h, { headers: filled(headers) }))
        expect(answer.status).to.equal(403)
        expect(answer.text).to.include('data-mode="refused"')
      })
    }
    for (const [what, headers] of Object.entries(accepted)) {
      it(`and accepts ${what}`, async () => {
        const answer = await raw(h, { headers: filled(headers), identifier: 'nobody' })
        expect(answer.status).to.equal(200)
        expect(answer.text).to.include('data-mode="sent"')
      })
    }
  })

  describe('builds links from the configured base URL alone (LINK)', () => {
    const spoofed: Record<string, Raw> = {
      'the Host': { headers: { host: 'evil.example' } },
      'the Host with our own as user': { headers: { host: '127.0.0.1:x@evil.example' } },
      'X-Forwarded-Host': { headers: { 'x-forwarded-host': 'evil.example' } },
      'every forwarding header': {
        headers: {
          'x-forwarded-host': 'evil.example',
          'x-forwarded-proto': 'https',
          'x-forwarded-port': '1',
          'x-forwarded-prefix': '/evil',
          forwarded: 'host=evil.example;proto=https',
          'x-host': 'evil.example',
          'x-original-host': 'evil.example',
          'x-original-url': '/evil',
        },
      },
      'an absolute request target': { target: 'http://evil.example/oauth2/forgot-password' },
    }
    for (const [what, how] of Object.entries(spoofed)) {
      it(`when a request spoofs ${what}, and for the next request (LINK-05)`, async () => {
        const before = h.mail.mails.length
        const answer = await raw(h, how)
        expect(answer.text).not.to.include('evil')
        await ask(h, 'ann')
        if (answer.status === 200) await h.mail.mailTo(ann.email ?? '', before + 2)
        for (const { mail, link } of h.mail.mails.slice(before)) {
          expect(link).to.equal(`${url.replace('forgot', 'reset')}?token=${tokenOf(link)}`)
          const addresses = `${mail.text} ${String(mail.html)}`.match(/https?:\/\/[^\s"'<]+/g)
          expect(new Set(addresses)).to.deep.equal(new Set([link]))
          expect(String(mail.html)).not.to.include('evil')
        }
      })
    }
  })

  it('answers a spoofed Host with the very page of an honest one', async () => {
    const honest = await ask(h, 'nobody')
    const { text } = await raw(h, { headers: { host: 'evil.example' }, identifier: 'nobody' })
    expect(text).to.equal(shapeOf(honest.answer).text)
  })
})

interface Raw {
  headers?: Record<string, string>
  target?: string
  identifier?: string
  /** A body that is sent in pieces, without its length. */
  chunked?: string
}

/** A request with headers that `fetch` sets by itself. */
async function raw(h: Harness, { headers = {}, target, identifier = 'ann', chunked }: Raw) {
  const { hostname, port } = new URL(h.baseUrl)
  const sent = request({
    hostname,
    port,
    method: 'POST',
    path: target ?? '/oauth2/forgot-password',
    headers: { 'content-type': FORM, ...headers },
  })
  if (chunked === undefined) sent.end(`identifier=${identifier}`)
  else {
    sent.write(chunked.slice(0, 20))
    sent.end(chunked.slice(20))
  }
  const [response] = await once(sent, 'response')
  let text = ''
  for await (const chunk of response) text += String(chunk)
  return { status: Number(response.statusCode), text }
}
