import { randomBytes } from 'node:crypto'
import { Agent, request as send } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect } from 'chai'
import * as fc from 'fast-check'
import { createAuthorizeSig } from '../../src/crypto/authorize-sig.ts'
import { createKeyRing } from '../../src/crypto/keys.ts'
import { newToken } from '../../src/crypto/token.ts'
import type { CarriedParameters } from '../../src/index.ts'
import { appendCarried, carriedFrom } from '../../src/ports/carried-query.ts'
import { expectPage, createUserAgent, type UserAgent } from '../support/user-agent.ts'
import { CLIENT, type Harness, PASSWORD, suiteHarness } from '../support/harness.ts'
import { isSameLink, linkChange, type Pairs, SIGNED, spellings, valueOf } from './link-changes.ts'
import type { ReceivedMail } from '../support/mail-server.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { ask, sha256, usableRecord } from '../support/observe.ts'
import { ofLink, records, withDamages } from '../support/records.ts'
import { type Person, tokenOf } from '../support/person.ts'
import { FORM } from '../support/raw-request.ts'
import { movableClock, moveTime } from '../support/time.ts'
import { turns } from '../support/bcrypt-work.ts'

const NEW = 'a new password'

const PASSWORDS = `password=${NEW}&confirm_password=${NEW}`

describe('Guessing tokens (TOK-21)', () => {
  const secret = randomBytes(32)
  const signature = createAuthorizeSig(createKeyRing([secret]))
  const connections = new Agent({ keepAlive: true, maxSockets: 16 })
  const h = suiteHarness({ flows: { secrets: [secret] } })
  let user: Person
  let link: string
  let login: Person

  before(async () => {
    user = await h.addVerified()
    link = await user.forgets()
    login = await h.blockedLogin()
  })
  after(() => connections.destroy())

  // As `fetch` would, at a third of its price.
  const answerTo = (method: string, path: string, body = '') =>
    new Promise<string>((resolve, reject) => {
      const headers = method === 'POST' ? { 'content-type': FORM } : {}
      const { port } = new URL(h.baseUrl)
      send({ port, method, path: `/oauth2${path}`, headers, agent: connections }, (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => (text += chunk))
        response.on('end', () => {
          const { location = '' } = response.headers
          const mode = /data-mode="([^"]*)"/.exec(text)?.[1] ?? ''
          resolve(`${response.statusCode} ${mode} ${location}`.trim())
        })
      })
        .on('error', reject)
        .end(body)
    })

  /** What a guess is tried with: with our own signature, so that nothing but the token is wrong. */
  const attempts: [string, string, (token: string) => Promise<string>][] = [
    ['GET', '400 invalid', (token) => answerTo('GET', `/reset-password?token=${token}`)],
    [
      'POST',
      '400 invalid',
      (token) => answerTo('POST', '/reset-password', `token=${token}&${PASSWORDS}`),
    ],
    ['GET', '400 expired', (token) => answerTo('GET', `/verify-email?${signed(token)}`)],
  ]

  function signed(token: string): string {
    const carried = { clientId: CLIENT.client_id, redirectUri: CLIENT.redirect_uris[0] }
    const query = appendCarried(new URLSearchParams({ token }), carried)
    query.append('authorize_sig', signature.sign(token, carried))
    return query.toString()
  }

  /** Of 43 characters, in part those of a live token. */
  function guess(index: number): string {
    const live = tokenOf(index % 3 === 0 ? link : login.link)
    const random = newToken()
    const kept = index % 4 === 0 ? 1 + (index % 42) : 0
    const token = live.slice(0, kept) + random.slice(kept)
    return token === live ? random : token
  }

  it('10,000 times gives nothing, changes no account, and locks nobody out [full]', async function () {
    this.timeout(300_000)
    await h.isIdle()
    const [events, mails] = [h.events.length, h.mail.mails.length]
    const outcomes = new Map<string, number>()
    let index = 0
    const worker = async () => {
      while (index < 10_000) {
        const [method, expected, attempt] = attempts[index % attempts.length] ?? attempts[0]!
        const answer = await attempt(guess(index++))
        const outcome = answer === expected ? 'refused' : `${method}: ${answer}`
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
      }
    }
    await Promise.all(Array.from({ length: 16 }, worker))
    expect(Object.fromEntries(outcomes)).to.deep.equal({ refused: 10_000 })
    expect(h.events.slice(events)).to.deep.equal([])
    expect(h.mail.mails.slice(mails)).to.deep.equal([])
    expect(await user.hasPassword(PASSWORD)).to.equal(true)
    expect(await login.isVerified()).to.equal(false)

    expect((await h.signIn(createUserAgent(), user.username)).location).to.include('code=')
    await login.stillGetsIn()
    expect((await h.reset(link, NEW)).mode).to.equal('done')
    expect(await user.hasPassword(NEW)).to.equal(true)
  })
})

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

describeWithMongo('Records that nobody was ever given a token for (TOK-04, TOK-07) [full]', () => {
  const agent = createUserAgent()
  const h = suiteHarness({ technology: 'mongodb' })

  const nothings: Record<string, string> = {
    'no token': '',
    'an empty token': 'token=',
    'a token without a value': 'token',
    null: 'token=null',
    undefined: 'token=undefined',
    'a space': 'token=%20',
    NUL: 'token=%00',
    'an empty list': 'token[]=',
    'an object': 'token=%7B%7D',
    'an operator': 'token[$exists]=false',
    'the hash of nothing': `token=${sha256('')}`,
  }

  it('are found by none of the ways to say nothing', async () => {
    const user = await h.addVerified()
    const login = await h.blockedLogin()
    const link = await user.forgets()
    for (const [name, mailed] of [
      ['password_reset_tokens', link],
      ['email_verification_tokens', login.link],
    ] as const) {
      const tokens = records(h, name)
      const genuine = await tokens.findOne(ofLink(mailed))
      if (!genuine) throw new Error('there is no record to copy')
      const { token_hash: _, ...rest } = genuine as Record<string, unknown>
      const hashes = [undefined, null, '', {}, [], sha256(''), sha256('null'), sha256('undefined')]
      for (const [index, token_hash] of hashes.entries()) {
        const hash = token_hash === undefined ? {} : { token_hash }
        const _id = `${name}-${index}`
        // Alive, in a place of its own.
        const copy = {
          ...rest,
          ...hash,
          _id,
          user_id: user.id,
          ...('live_of' in rest && { live_of: _id }),
        }
        await tokens.insertOne(copy).catch(() => {})
      }
      expect(await tokens.countDocuments({ _id: { $regex: `^${name}` } })).to.be.at.least(6)
    }
    for (const [what, query] of Object.entries(nothings)) {
      for (const page of ['reset-password', 'verify-email', 'not-me']) {
        const sig = new URL(login.link).searchParams.get('authorize_sig') ?? ''
        const url = `${h.oauthUrl}/${page}`
        const answers = [
          await agent.get(`${url}?${query}`),
          await agent.get(`${url}?${query}&authorize_sig=${sig}`),
        ]
        if (page !== 'verify-email')
          answers.push(await agent.post(url, `${query}&action=confirm&${PASSWORDS}`))
        for (const { status, location } of answers)
          expect([status, location], `${what} at ${page}`).to.deep.equal([400, undefined])
      }
    }
    expect(await user.hasPassword(PASSWORD)).to.equal(true)
    expect(await login.isVerified()).to.equal(false)
    await login.stillGetsIn()
    expect((await h.reset(link, NEW)).mode).to.equal('done')
  })

  it('a verification link whose time is no date, or is missing, is expired, and so is its answer', async () => {
    const login = await h.blockedLogin()
    const later = new Date(Date.now() + 3_600_000)
    const damages = [
      { $unset: { expires_at: 1 } },
      ...[null, '', later.toISOString(), later.getTime(), [later], { $date: later }, true].map(
        (expires_at) => ({ $set: { expires_at } }),
      ),
      { $unset: { used_at: 1 } },
      { $set: { user_id: null } },
    ]
    const tokens = records(h, 'email_verification_tokens')
    await withDamages(tokens, ofLink(login.link), damages, async () => {
      await login.opensLink()
      await login.sees('verify-email', 'expired', 400)
      await login.getsNothing()
    })
    await login.stillGetsIn()
  })

  it('and one that is removed while its link is used refuses the reset, or lets it be done whole (TOK-23)', async () => {
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

  it('and one that was removed refuses the verification, and a link that is sent again verifies (TOK-23)', async () => {
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

const anyText = fc.string({ unit: 'binary', maxLength: 40 })

const carried = fc.record(
  { clientId: anyText, redirectUri: anyText, scope: anyText, state: anyText },
  { requiredKeys: [] },
) satisfies fc.Arbitrary<CarriedParameters>

describe('authorize_sig, whatever the parameters are (5.4)', () => {
  const sig = createAuthorizeSig(createKeyRing([Buffer.alloc(32, 7)]))

  function asPairs(token: string, parameters: CarriedParameters): Pairs {
    const link = appendCarried(new URLSearchParams({ token }), parameters)
    link.append('authorize_sig', sig.sign(token, parameters))
    return [...link]
  }

  it('verifies nothing else: no two links have one signature', () => {
    fc.assert(
      fc.property(carried, carried, fc.boolean(), (one, other, isSameToken) => {
        const token = newToken()
        const second = isSameToken ? token : newToken()
        fc.pre(
          !isSameToken || JSON.stringify(asPairs('', one)) !== JSON.stringify(asPairs('', other)),
        )
        expect(sig.verify(sig.sign(token, one), second, other)).to.equal(false)
      }),
    )
  })

  it('notices every change of a byte, a boundary or a presence (SIG-07)', () => {
    fc.assert(
      fc.property(carried, linkChange, (parameters, change) => {
        const honest = asPairs(newToken(), parameters)
        const names = honest.map(([name]) => name)
        const changed = change(honest)
        // Repeated and bracketed names never come this far.
        fc.pre(changed.every(([name], at) => changed.findIndex(([each]) => each === name) === at))
        fc.pre(!isSameLink(honest, changed) && names.length > 0)
        fc.pre(!changed.some(([name]) => name.includes('[')))
        const verified = sig.verify(
          valueOf(changed, 'authorize_sig'),
          valueOf(changed, 'token'),
          carriedFrom(new Map(changed)),
        )
        expect(verified).to.equal(false)
      }),
      { numRuns: 1_000 },
    )
  })
})

describe('A mailed verification link, whatever becomes of its query (5.4, SIG) [full]', () => {
  const h = suiteHarness()
  let login: Person
  let pairs: Pairs
  /** Signed in with another account: a link that is accepted asks first, and consumes nothing. */
  let bystander: UserAgent
  let url: string

  before(async () => {
    url = `${h.oauthUrl}/verify-email`
    const extra = { state: 'a b&c=d+é%26"😀', scope: 'openid email' }
    login = await h.blockedLogin({ extra })
    pairs = [...new URL(login.link).searchParams]
    const other = await h.addVerified()
    await other.signsIn()
    bystander = other.agent
  })

  const query = (changed: Pairs) =>
    changed.map((pair) => pair.map((each) => encodeURIComponent(each)).join('=')).join('&')

  async function isRefused(agent: UserAgent, changed: string) {
    const answer = await agent.get(`${url}?${changed}`)
    expectPage(answer, 400, 'verify-email', 'expired')
    await login.getsNothing(answer)
  }

  it('is refused after any change, duplication, removal or bracket, and is unspent (SIG-01, SIG-04)', async () => {
    await fc.assert(
      fc.asyncProperty(linkChange, async (change) => {
        const changed = change(pairs)
        fc.pre(!isSameLink(pairs, changed))
        await isRefused(createUserAgent(), query(changed))
      }),
      { numRuns: 150 },
    )
  })

  it('is refused with a parameter twice, though a line break stands before its second value', async () => {
    for (const name of SIGNED) {
      for (const value of ['%0Aer', '%0D%0A', '%0A%20x', '3Dx']) {
        const again = `${name}=${value}`
        for (const text of [`${query(pairs)}&${again}`, `${again}&${query(pairs)}`]) {
          await isRefused(bystander, text)
        }
      }
    }
    expect((await bystander.get(`${url}?${query(pairs)}`)).mode).to.equal('other_account')
  })

  it('is accepted in every order and percent-encoding, with foreign parameters beside (SIG-03)', async () => {
    await fc.assert(
      fc.asyncProperty(spellings(pairs), async (spelling) => {
        const answer = await bystander.get(`${url}?${spelling}`)
        expect([answer.status, answer.mode], spelling).to.deep.equal([200, 'other_account'])
        const ahead = await bystander.get(`${url}?${spelling}`, { purpose: 'prefetch' })
        const { ui_locales: _, ...link } = ahead.hidden
        expect(link).to.deep.equal(Object.fromEntries(pairs))
        expect(await login.isVerified()).to.equal(false)
      }),
      { numRuns: 80 },
    )
  })

  it('does all of its work after all of that', () => login.stillGetsIn())
})
