import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect } from 'chai'
import { createUserAgent } from '../support/user-agent.ts'
import { type Harness, PASSWORD, suiteHarness } from '../support/harness.ts'
import type { ReceivedMail } from '../support/mail-server.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { ask, sha256, usableRecord } from '../support/observe.ts'
import { ofLink, records } from '../support/records.ts'
import { tokenOf } from '../support/person.ts'
import { movableClock, moveTime } from '../support/time.ts'
import { turns } from '../support/bcrypt-work.ts'

const NEW = 'a new password'

describe('The lifetime of a link', () => {
  let at: Date | undefined
  const clock = { ...movableClock, now: () => at ?? movableClock.now() }
  const h = suiteHarness({ flows: { clock } })

  it('ends at the millisecond that it expires, and not before (TOK-08)', async () => {
    const user = await h.addVerified()
    const link = await user.forgets()
    const login = await h.blockedLogin()
    const hashOf = (mailed: string) => sha256(tokenOf(mailed))
    const reset = await h.store.resetTokens.find(hashOf(link))
    const verification = await h.store.verificationTokens.find(hashOf(login.link))
    const end = (token: { expiresAt: Date } | undefined) => token?.expiresAt.getTime() ?? NaN

    for (const late of [0, 1, 86_400_000]) {
      at = new Date(end(reset) + late)
      expect((await user.opensLink()).mode).to.equal('invalid')
      expect((await user.choosesPassword(NEW)).mode).to.equal('invalid')
      at = new Date(end(verification) + late)
      await login.opensLink()
      await login.sees('verify-email', 'expired', 400)
      await login.getsNothing()
    }
    expect(await user.hasPassword(PASSWORD)).to.equal(true)

    at = new Date(end(verification) - 1)
    await login.stillGetsIn()
    at = new Date(end(reset) - 1)
    expect((await user.opensLink()).mode).to.equal('form')
    expect((await user.choosesPassword(NEW)).mode).to.equal('done')
    at = undefined
  })
})

describe('A link', () => {
  const agent = createUserAgent()
  const h = suiteHarness()

  // The mail says how long its link works, and that is kept, whatever the setting becomes.
  it('lives as long as was set when it was mailed, whatever is set later, and each kind has its own time (TOK-09, TOK-10)', async () => {
    await h.put({ password_reset_expiration: '2s' })
    const [ann, bob] = [await h.addVerified(), await h.addVerified()]
    await ann.forgets()
    const login = await h.blockedLogin()
    await h.put({ password_reset_expiration: '1h' })
    await bob.forgets()
    await h.put({ password_reset_expiration: '1s', email_verification_expiration: '1s' })
    await moveTime(2_050)
    expect((await ann.opensLink()).mode).to.equal('invalid')
    expect((await ann.choosesPassword(NEW)).mode).to.equal('invalid')
    expect(await ann.hasPassword(PASSWORD)).to.equal(true)
    expect((await bob.choosesPassword(NEW)).mode).to.equal('done')
    await login.stillGetsIn()
    await h.put({ password_reset_expiration: '1h', email_verification_expiration: '1h' })
  })

  it('is in no answer of forgot-password, resend-verification or the blocked login (TOK-03)', async () => {
    const [ann, ben] = [await h.addVerified(), await h.addUnverified()]
    const login = await h.blockedLogin()
    const answers = [
      login.blocked,
      await agent.post(`${h.oauthUrl}/forgot-password`, { identifier: ann.username }),
      await agent.post(`${h.oauthUrl}/resend-verification`, { username: ben.username }),
    ]
    const mails = await Promise.all([login, ann, ben].map(({ email = '' }) => h.mail.mailTo(email)))
    for (const { headers, text } of answers) {
      const everything = [...headers].flat().join('\n') + text
      for (const token of mails.map(({ link }) => tokenOf(link))) {
        expect(everything).not.to.include(token).and.not.to.include(sha256(token))
      }
    }
    for (const { headers, text } of answers.slice(1)) {
      expect(headers.getSetCookie()).to.deep.equal([])
      expect(text).not.to.match(/[\w-]{43}/)
    }
  })

  it('is not consumed by HEAD and GET of a reset, whatever is asked and how often (TOK-19, VER-01)', async () => {
    const user = await h.addVerified()
    const link = await user.forgets()
    for (const headers of [
      {},
      { 'sec-purpose': 'prefetch;prerender' },
      { purpose: 'prefetch' },
      { 'sec-fetch-dest': 'image' },
      { range: 'bytes=0-10' },
      { 'if-none-match': '*' },
      { 'user-agent': 'a scanner of links' },
    ]) {
      for (const method of ['HEAD', 'GET', 'HEAD']) {
        const answer = await agent.request(method, link, { headers })
        expect(answer.status).to.equal(200)
        expect(answer.headers.getSetCookie()).to.deep.equal([])
      }
    }
    expect(await usableRecord(h, link)).to.not.equal(undefined)
    expect((await h.reset(link, NEW)).mode).to.equal('done')
  })
})

describeWithMongo('A record that is gone (TOK-23) [full]', () => {
  const h = suiteHarness({ technology: 'mongodb' })

  it('refuses the reset, or lets it be done whole, where it goes while its link is used', async () => {
    const tokens = records(h, 'password_reset_tokens')
    for (let round = 0; round < 12; round += 1) {
      const user = await h.addVerified()
      const link = await user.forgets()
      // What MongoDB itself removes: what nobody used for a week.
      const reap = () => tokens.deleteOne({ ...ofLink(link), claimed_at: null })
      const isFirst = round === 0
      if (isFirst) await reap()
      const [{ mode, status }] = await Promise.all([h.reset(link, NEW), turns(round).then(reap)])
      expect(`${status} ${mode}`).to.be.oneOf(['400 invalid', ...(isFirst ? [] : ['200 done'])])
      expect(await user.hasPassword(NEW)).to.equal(mode === 'done')
      expect(await user.hasPassword(PASSWORD)).to.equal(mode !== 'done')
      await user.getsBackIn()
    }
  })

  it('refuses the verification, and a link that is sent again verifies', async () => {
    const login = await h.blockedLogin()
    await records(h, 'email_verification_tokens').deleteOne(ofLink(login.link))
    await login.opensLink()
    await login.sees('verify-email', 'expired', 400)
    await login.getsNothing()
    await login.asksAgain(login.page.hidden)
    await login.stillGetsIn()
  })
})

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
  'our own as user of a target': { lines: ['Host: HOST'], origin: 'http://HOST:x@evil.example' },
  'a Referer': { lines: ['Host: evil.example', 'Referer: https://evil.example/x'] },
}

/** Headers and body that no client of HTTP would send: byte for byte, over a connection of its own. */
async function raw(h: Harness, path: string, form: Record<string, string>, spoof: Spoof) {
  const { hostname, port, host } = new URL(h.baseUrl)
  const body = new URLSearchParams(form).toString()
  const lines = [
    `POST ${spoof.origin ?? ''}/oauth2${path} HTTP/1.1`,
    ...spoof.lines,
    'Content-Type: application/x-www-form-urlencoded',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ]
  const socket = connect(Number(port), hostname)
  const head = lines.map((line) => line.replace('HOST', host))
  socket.write([...head, '', body].join('\r\n'))
  const answer = await text(socket)
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]), text: answer }
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

describe('A mailed link, whatever host the request names (LINK-01, LINK-02, LINK-03, LINK-04, LINK-05)', () => {
  // What is remembered of the first request is used by all others here.
  const h = suiteHarness()

  for (const [what, spoof] of Object.entries(SPOOFS)) {
    it(`leads to the configured base URL, in text and HTML: ${what}`, async () => {
      const [ann, ben] = [await h.addVerified(), await h.addUnverified()]
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
    const user = await h.addUnverified()
    await user.starts()
    const cookie = `Cookie: ${user.agent.cookiesFor(`${h.oauthUrl}/login`)}`
    const form = { username: user.username, password: PASSWORD }
    const spoof = { lines: ['Host: evil.example', 'X-Forwarded-Host: evil.example', cookie] }
    const { status, text } = await raw(h, '/login', form, spoof)
    expect(status).to.equal(200)
    expect(text).to.include('data-mode="blocked"').and.not.include('evil')
    const mail = await user.mail(1)
    expectOurs(h, mail, 'verify-email')
    await user.opensLink((user.link = mail.link))
    await user.comesBack()
  })
})
