import { once } from 'node:events'
import { connect } from 'node:net'
import { expect } from 'chai'
import { PASSWORD, startHarness, type Harness } from '../support/harness.ts'
import type { ReceivedMail } from '../support/mail-server.ts'
import { ask } from '../support/observe.ts'
import { createUserAgent, type Answer } from '../support/user-agent.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import {
  addUnverified,
  addVerified,
  blockedLogin,
  type Person,
  tokenOf,
} from '../support/person.ts'

const EVIL = 'https://evil.example'

interface Spoof {
  /** Header lines in place of the honest `Host`; `HOST` stands for that. */
  lines: string[]
  /** What comes before the path in the request line. */
  origin?: string
}

/** Each names another place than the configured base URL (LINK-01 to LINK-04). */
const SPOOFS: Record<string, Spoof> = {
  'another Host': { lines: ['Host: evil.example'] },
  'another Host with a port': { lines: ['Host: evil.example:443'] },
  'our own Host as the user of another': { lines: ['Host: HOST:x@evil.example'] },
  'our own Host as a part of another': { lines: ['Host: HOST.evil.example'] },
  'a Host with a path': { lines: ['Host: evil.example/HOST'] },
  'a Host with markup': { lines: ['Host: "><a href=//evil.example>'] },
  'two Hosts': { lines: ['Host: HOST', 'Host: evil.example'] },
  'two Hosts, ours last': { lines: ['Host: evil.example', 'Host: HOST'] },
  'an empty Host': { lines: ['Host:', 'X-Forwarded-Host: evil.example'] },
  'X-Forwarded-Host': { lines: ['Host: HOST', 'X-Forwarded-Host: evil.example'] },
  'X-Forwarded-Host with a list': { lines: ['Host: HOST', 'X-Forwarded-Host: HOST, evil.example'] },
  'X-Forwarded-Proto': { lines: ['Host: HOST', 'X-Forwarded-Proto: javascript'] },
  'X-Forwarded-Port': { lines: ['Host: HOST', 'X-Forwarded-Port: 666'] },
  'X-Forwarded-Prefix': { lines: ['Host: HOST', 'X-Forwarded-Prefix: /evil'] },
  'X-Forwarded-Server': { lines: ['Host: HOST', 'X-Forwarded-Server: evil.example'] },
  Forwarded: { lines: ['Host: HOST', 'Forwarded: host=evil.example;proto=https'] },
  'X-Host': { lines: ['Host: HOST', 'X-Host: evil.example'] },
  'X-Original-Host': { lines: ['Host: HOST', 'X-Original-Host: evil.example'] },
  'X-Original-URL': { lines: ['Host: HOST', 'X-Original-URL: //evil.example/'] },
  'X-Rewrite-URL': { lines: ['Host: HOST', 'X-Rewrite-URL: //evil.example/'] },
  'an absolute request target': { lines: ['Host: HOST'], origin: 'http://evil.example' },
  'an absolute target with our own as user': {
    lines: ['Host: HOST'],
    origin: 'http://HOST:x@evil.example',
  },
  'another Origin and Referer of its own': {
    lines: ['Host: evil.example', 'Referer: https://evil.example/x'],
  },
}

/** Headers and body that no client of HTTP would send: byte for byte, over a connection of its own. */
async function raw(h: Harness, path: string, form: Record<string, string>, spoof: Spoof) {
  const { hostname, port, host } = new URL(h.baseUrl)
  const body = new URLSearchParams(form).toString()
  const target = `${(spoof.origin ?? '').replace('HOST', host)}/oauth2${path}`
  const socket = connect(Number(port), hostname)
  socket.write(
    [
      `POST ${target} HTTP/1.1`,
      ...spoof.lines.map((line) => line.replace('HOST', host)),
      'Content-Type: application/x-www-form-urlencoded',
      `Content-Length: ${Buffer.byteLength(body)}`,
      'Connection: close',
      '',
      body,
    ].join('\r\n'),
  )
  let text = ''
  socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  await once(socket, 'close')
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]), text }
}

/** Both parts lead to the base URL and nowhere else. */
function expectOurs(h: Harness, { mail, link }: ReceivedMail, page: string) {
  expect(link.split('?')[0]).to.equal(`${h.oauthUrl}/${page}`)
  const html = String(mail.html)
  const addresses = `${mail.text} ${html}`.replaceAll('&amp;', '&').match(/\b[a-z]+:\/\/[^\s"'<]+/g)
  const [ours, notMe, ...others] = new Set(addresses)
  expect([ours, notMe?.split('?')[0], ...others]).to.deep.equal([link, `${h.oauthUrl}/not-me`])
  expect(mail.text + html).not.to.match(/evil|javascript:|:666/)
}

describe('A mailed link, whatever host the request names (LINK-01, LINK-02, LINK-03, LINK-04)', () => {
  const h = suiteHarness()

  for (const [what, spoof] of Object.entries(SPOOFS)) {
    it(`leads to the configured base URL, in text and HTML: ${what}`, async () => {
      const [ann, ben] = [await addVerified(h), await addUnverified(h)]
      const answers = [
        await raw(h, '/forgot-password', { identifier: ann.username }, spoof),
        await raw(h, '/resend-verification', { username: ben.username }, spoof),
      ]
      for (const { status, text } of answers) {
        // Refused, or done as if it had been honest.
        expect(status, text).to.be.oneOf([200, 400, 403])
        expect(text.split('\r\n\r\n')[1] ?? '').not.to.match(/evil|javascript/)
      }
      for (const [index, user, page] of [
        [0, ann, 'reset-password'],
        [1, ben, 'verify-email'],
      ] as const) {
        if (answers[index]?.status !== 200) continue
        expectOurs(h, await h.mail.mailTo(user.email ?? ''), page)
      }
      // And so does what an honest request gets afterwards.
      await ask(h, ann.username)
      const own = h.mail.mails.filter(({ to }) => to.includes(ann.email ?? ''))
      for (const mail of own) expectOurs(h, mail, 'reset-password')
      expect((await createUserAgent().get(own.at(-1)?.link ?? '')).mode).to.equal('form')
    })
  }

  it('of a blocked login, too, and the login ends at the client', async () => {
    const agent = createUserAgent()
    const user = await addUnverified(h)
    const request = await h.party.begin()
    await h.follow(agent, await agent.get(request.url))
    const cookie = `Cookie: ${agent.cookiesFor(`${h.oauthUrl}/login`)}`
    const form = { username: user.username, password: PASSWORD }
    const spoof = { lines: ['Host: evil.example', 'X-Forwarded-Host: evil.example', cookie] }
    const { status, text } = await raw(h, '/login', form, spoof)
    expect(status).to.equal(200)
    expect(text).to.include('data-mode="blocked"').and.not.include('evil')
    const mail = await h.mail.mailTo(user.email ?? '')
    expectOurs(h, mail, 'verify-email')
    const login = { user, agent, party: h.party, request, link: mail.link } as Person
    await login.comesBack(await agent.get(mail.link))
  })
})

describe('The first request after the start (LINK-05)', () => {
  it('has no say in the links of those that follow, be it poisoned', async () => {
    const h = await startHarness()
    try {
      for (const spoof of Object.values(SPOOFS)) {
        await raw(h, '/forgot-password', { identifier: 'nobody' }, spoof)
        await raw(h, '/resend-verification', { username: 'nobody' }, spoof)
      }
      const user = await addVerified(h)
      await ask(h, user.username)
      expectOurs(h, await h.mail.mailTo(user.email ?? ''), 'reset-password')
      const login = await blockedLogin(h)
      expectOurs(h, await h.mail.mailTo(login.email ?? ''), 'verify-email')
    } finally {
      await h.close()
    }
  })
})

describe('Pages with a token in their address (LINK-07, LINK-08, LINK-14)', () => {
  const h = suiteHarness()

  /** Every page that a link can lead to, by what it is. */
  async function pages(): Promise<Record<string, Answer>> {
    const agent = createUserAgent()
    const [ann, ben] = [await addVerified(h), await addVerified(h)]
    const [link, other] = [await ann.forgets(), await ben.forgets()]
    const login = await blockedLogin(h)
    const verified = await blockedLogin(h)
    await verified.becomes({ emailVerified: true })
    const stranger = createUserAgent()
    await h.signIn(stranger, ben.username)
    const token = tokenOf(link)
    const url = `${h.oauthUrl}/reset-password`
    return {
      'the form': await agent.get(link),
      'the form again': await h.reset(link, 'short'),
      'the form after a mismatch': await h.reset(link, 'one password', 'another password'),
      other_account: await stranger.get(login.link),
      'the redirect to the client': await login.agent.get(login.link),
      'mode expired': await login.agent.get(login.link),
      'mode expired for a broken link': await agent.get(login.link.slice(0, -3)),
      'mode verified': await verified.agent.get(verified.link),
      'a prefetch': await agent.get(login.link, { 'sec-purpose': 'prefetch' }),
      'another method': await agent.request('PUT', link),
      'a reset from another site': await agent.post(url, { token }, { origin: EVIL }),
      'a reset that is done': await h.reset(other, 'a new password'),
      'a spent link': await agent.get(other),
    }
  }

  it('are stored nowhere, tell no referrer, load nothing from elsewhere, and are not indexed', async () => {
    for (const [what, { headers, text, status }] of Object.entries(await pages())) {
      expect(headers.get('referrer-policy'), what).to.equal('no-referrer')
      expect(headers.get('cache-control'), what).to.include('no-store')
      expect([headers.get('etag'), headers.get('last-modified')], what).to.deep.equal([null, null])
      if (status === 302) continue
      expect(headers.get('x-robots-tag'), what).to.equal('noindex')
      // A link that a person may follow is not loaded.
      const loaded = text.replace(/<a [^>]*rel="noreferrer"[^>]*>/g, '')
      expect(loaded, what).not.to.match(/(?:src|href|action)="?(?:[a-z]+:)?\/\//i)
    }
  })

  it('have links outwards that tell no referrer', async () => {
    const user = await addVerified(h)
    const carried = { client_id: 'server', redirect_uri: 'https://server.example/cb' }
    await ask(h, user.username, carried)
    const { link } = await h.mail.mailTo(user.email ?? '')
    const { text } = await h.reset(link, 'a new password')
    expect(text).to.match(/<a [^>]*rel="noreferrer"/)
    for (const [tag] of text.matchAll(/<a [^>]*>/g)) expect(tag).to.include('rel="noreferrer"')
  })
})

describe('What is logged of a request with a token (LINK-09, I1)', () => {
  it('holds nothing of the token, whatever becomes of the request (TOK-02)', async () => {
    const logged: string[] = []
    let isBroken = false
    const h = await startHarness({
      flows: { log: (...line) => logged.push(JSON.stringify(line)) },
      adapter: (adapter) => (model) => {
        const inner = adapter(model)
        return {
          ...inner,
          async find(id) {
            if (isBroken) throw new Error('the adapter is broken')
            return inner.find(id)
          },
        }
      },
    })
    const streams = [process.stdout, process.stderr] as const
    const writes = streams.map((stream) => stream.write.bind(stream))
    streams.forEach((stream, index) => {
      stream.write = (...parts: [never, never]) => {
        logged.push(String(parts[0]))
        return writes[index]?.(...parts) ?? true
      }
    })
    try {
      const agent = createUserAgent()
      const user = await addVerified(h)
      const link = await user.forgets()
      const login = await blockedLogin(h)
      const tokens = [tokenOf(link), tokenOf(login.link)]
      const signature = new URL(login.link).searchParams.get('authorize_sig') ?? ''
      isBroken = true
      const failed = await login.agent.get(login.link)
      expect(failed.status).to.equal(500)
      isBroken = false
      const answers = [failed]
      for (const token of tokens) {
        const paths = [`reset-password/${token}`, `verify-email/${token}`, `x?token=${token}`]
        for (const path of paths) {
          answers.push(await agent.get(`${h.oauthUrl}/${path}`))
        }
        answers.push(await agent.request('TRACE', `${h.oauthUrl}/x`).catch(() => failed))
      }
      answers.push(await login.agent.get(login.link), await login.agent.get(login.link))
      answers.push(await h.reset(link, 'a new password'), await agent.get(link))
      for (const secret of [...tokens, signature]) {
        expect(logged.join('\n')).not.to.include(secret)
        for (const { text } of answers) expect(text).not.to.include(secret)
        expect(JSON.stringify(h.events)).not.to.include(secret)
      }
    } finally {
      streams.forEach((stream, index) => (stream.write = writes[index] as typeof stream.write))
      await h.close()
    }
  })
})
