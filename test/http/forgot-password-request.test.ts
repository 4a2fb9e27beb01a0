import { once } from 'node:events'
import { request } from 'node:http'
import { expect } from 'chai'
import type { User } from '../../src/index.ts'
import { type Harness } from '../support/harness.ts'
import { ask, tokenOf, withoutMail } from '../support/observe.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent, type Form } from '../support/user-agent.ts'

const FORM = 'application/x-www-form-urlencoded'
const LIMIT = 65_536
/** Answered like any other, and never looked up: nothing is left to wait for. */
const NOBODY = 'n'.repeat(300)

describe('A request to {oauth_path}/forgot-password', () => {
  const agent = createUserAgent()
  const h = suiteHarness()
  let ann: User
  let url: string

  before(async () => {
    ann = await h.addUser({ username: 'ann' })
    url = `${h.oauthUrl}/forgot-password`
  })

  const post = (form: Form, headers?: Record<string, string>) => agent.post(url, form, headers)

  describe('reads nothing but a url-encoded form of at most 64 KiB (D31)', () => {
    it('and takes a charset in its type', async () => {
      const answer = await post(
        { identifier: NOBODY },
        { 'content-type': `${FORM}; charset=UTF-8` },
      )
      expect([answer.status, answer.mode]).to.deep.equal([200, 'sent'])
    })

    const sized = (size: number) => `identifier=${NOBODY}&x=`.padEnd(size, 'x')

    it('and takes exactly 64 KiB, and refuses one byte more, announced or not', async () => {
      const answer = await post(sized(LIMIT))
      expect([answer.status, answer.mode]).to.deep.equal([200, 'sent'])
      const announced = await withoutMail(h, () => post(sized(LIMIT + 1)))
      expect([announced.status, announced.mode]).to.deep.equal([413, 'body_too_large'])
      const streamed = await withoutMail(h, () => raw(h, { chunked: sized(LIMIT + 1) }))
      expect(streamed.status).to.equal(413)
    })
  })

  describe('refuses forms that another site posts (D31)', () => {
    // Every pair of the two headers is in test/attacks/cross-site.test.ts.
    const refused: Record<string, Record<string, string>> = {
      'cross-site with our own origin': { 'sec-fetch-site': 'cross-site', origin: 'OWN' },
      'a foreign origin that claims same-origin': {
        origin: 'https://evil.example',
        'sec-fetch-site': 'same-origin',
      },
      'our origin with a suffix': { origin: 'OWN.evil.example' },
      'our host under another scheme': { origin: 'HTTPS' },
      'Origin: null': { origin: 'null' },
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

    it('such as those: 403, and no mail', async () => {
      for (const [what, headers] of Object.entries(refused)) {
        const answer = await withoutMail(h, () => raw(h, { headers: filled(headers) }))
        expect(answer.status, what).to.equal(403)
        expect(answer.text, what).to.include('data-mode="refused"')
      }
    })

    it('and accepts our own, and those of programs', async () => {
      for (const [what, headers] of Object.entries(accepted)) {
        const answer = await raw(h, { headers: filled(headers), identifier: NOBODY })
        expect(answer.status, what).to.equal(200)
        expect(answer.text, what).to.include('data-mode="sent"')
      }
    })
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
        const isAccepted = answer.status === 200
        if (isAccepted) await h.mail.mailTo(ann.email ?? '', before + 1)
        await ask(h, 'ann')
        await h.mail.mailTo(ann.email ?? '', before + (isAccepted ? 2 : 1))
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
    const honest = await post({ identifier: NOBODY })
    const { text } = await raw(h, { headers: { host: 'evil.example' }, identifier: NOBODY })
    expect(honest.mode).to.equal('sent')
    expect(text).to.equal(honest.text)
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
