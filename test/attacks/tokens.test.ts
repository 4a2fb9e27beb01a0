import { randomBytes } from 'node:crypto'
import { Agent, request as send } from 'node:http'
import { expect } from 'chai'
import { appendCarried } from '../../src/ports/carried-query.ts'
import { createAuthorizeSig } from '../../src/crypto/authorize-sig.ts'
import { createKeyRing } from '../../src/crypto/keys.ts'
import { newToken } from '../../src/crypto/token.ts'
import { expectExpired } from '../support/blocked-login.ts'
import { eventually } from '../support/eventually.ts'
import { CLIENT, PASSWORD, startHarness, type Harness } from '../support/harness.ts'
import { isIdle } from '../support/jobs.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { databaseOf, sha256, usableRecord } from '../support/observe.ts'
import { FORM } from '../support/raw-request.ts'
import { movableClock, moveTime } from '../support/time.ts'
import { turns } from '../support/turns.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import {
  addUnverified,
  addVerified,
  blockedLogin,
  type Person,
  tokenOf,
} from '../support/person.ts'

const NEW = 'a new password'
const PASSWORDS = `password=${NEW}&confirm_password=${NEW}`

describe('Guessing tokens (TOK-21)', () => {
  const secret = randomBytes(32)
  const signature = createAuthorizeSig(createKeyRing([secret]))
  const connections = new Agent({ keepAlive: true, maxSockets: 16 })
  let h: Harness
  let user: Person
  let link: string
  let login: Person

  before(async () => {
    h = await startHarness({ flows: { secrets: [secret] } })
    user = await addVerified(h)
    link = await user.forgets()
    login = await blockedLogin(h)
  })
  after(() => {
    connections.destroy()
    return h.close()
  })

  // As `fetch` would, at a third of its price.
  const answerTo = (method: string, path: string, body = '') =>
    new Promise<string>((resolve, reject) => {
      const headers = method === 'POST' ? { 'content-type': FORM } : {}
      const { port } = new URL(h.baseUrl)
      send({ port, method, path, headers, agent: connections }, (response) => {
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

  const get = (path: string) => answerTo('GET', `/oauth2${path}`)
  const post = (path: string, body: string) => answerTo('POST', `/oauth2${path}`, body)

  /** What a guess is tried with: with our own signature, so that nothing but the token is wrong. */
  const attempts: [string, string, (token: string) => Promise<string>][] = [
    ['GET', '400 invalid', (token) => get(`/reset-password?token=${token}`)],
    ['POST', '400 invalid', (token) => post('/reset-password', `token=${token}&${PASSWORDS}`)],
    ['GET', '400 expired', (token) => get(`/verify-email?${signed(token)}`)],
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
    await isIdle(h)
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

  it('200 at once costs no bcrypt: where one hash takes minutes, all are answered (PWD-08)', async () => {
    const { store, users } = h
    const slow = await startHarness({ flows: { bcryptCost: 20, store, users } })
    try {
      const honest = await user.forgets()
      const reset = (form: Record<string, string> | string) =>
        createUserAgent().post(`${slow.oauthUrl}/reset-password`, form)
      const forms = Array.from({ length: 200 }, () => `token=${newToken()}&${PASSWORDS}`)
      const answers = await Promise.all(forms.map(reset))
      expect(new Set(answers.map(({ mode }) => mode))).to.deep.equal(new Set(['invalid']))
      // Nor does a form that is refused for its password, be the token genuine.
      for (const [password, confirm_password, mode] of [
        ['one', 'another', 'password_mismatch'],
        ['short', 'short', 'password_too_short'],
      ] as const) {
        const form = { token: tokenOf(honest), password, confirm_password }
        expect((await reset(form)).mode).to.equal(mode)
      }
      expect((await h.reset(honest, 'an honest password')).mode).to.equal('done')
    } finally {
      await slow.close()
    }
  })
})

describe('The lifetime of a link', () => {
  it('ends at the millisecond that it expires, and not before (TOK-08)', async () => {
    let at: Date | undefined
    const clock = { ...movableClock, now: () => at ?? movableClock.now() }
    const h = await startHarness({ flows: { clock } })
    const { resetTokens, verificationTokens } = h.store
    try {
      const agent = createUserAgent()
      const user = await addVerified(h)
      const link = await user.forgets()
      const login = await blockedLogin(h)
      const hashes = [link, login.link].map((each) => sha256(tokenOf(each)))
      const reset = await resetTokens.find(hashes[0] ?? '')
      const verification = await verificationTokens.find(hashes[1] ?? '')
      const end = (token: { expiresAt: Date } | undefined) => token?.expiresAt.getTime() ?? NaN

      for (const late of [0, 1, 86_400_000]) {
        at = new Date(end(reset) + late)
        expect((await agent.get(link)).mode).to.equal('invalid')
        expect((await h.reset(link, NEW)).mode).to.equal('invalid')
        at = new Date(end(verification) + late)
        const answer = await login.agent.get(login.link)
        expectExpired(answer)
        await login.getsNothing(answer)
      }
      expect(await user.hasPassword(PASSWORD)).to.equal(true)

      at = new Date(end(verification) - 1)
      await login.stillGetsIn()
      at = new Date(end(reset) - 1)
      expect((await agent.get(link)).mode).to.equal('form')
      expect((await h.reset(link, NEW)).mode).to.equal('done')
    } finally {
      await h.close()
    }
  })
})

describe('A link', () => {
  const agent = createUserAgent()
  const h = suiteHarness()

  // The mail says how long its link works, and that is kept, whatever the setting becomes.
  it('lives as long as was set when it was mailed, whatever is set later, and each kind has its own time (TOK-09, TOK-10)', async () => {
    await h.put({ password_reset_expiration: '2s' })
    const [ann, bob] = [await addVerified(h), await addVerified(h)]
    const short = await ann.forgets()
    const login = await blockedLogin(h)
    await h.put({ password_reset_expiration: '1h' })
    const long = await bob.forgets()
    await h.put({ password_reset_expiration: '1s', email_verification_expiration: '1s' })
    await moveTime(2_050)
    expect((await agent.get(short)).mode).to.equal('invalid')
    expect((await h.reset(short, NEW)).mode).to.equal('invalid')
    expect(await ann.hasPassword(PASSWORD)).to.equal(true)
    expect((await h.reset(long, NEW)).mode).to.equal('done')
    await login.stillGetsIn()
    await h.put({ password_reset_expiration: '1h', email_verification_expiration: '1h' })
  })

  it('is in no answer of forgot-password, resend-verification or the blocked login (TOK-03)', async () => {
    const [ann, ben] = [await addVerified(h), await addUnverified(h)]
    const login = await blockedLogin(h)
    const answers = [
      login.blocked,
      await agent.post(`${h.oauthUrl}/forgot-password`, { identifier: ann.username }),
      await agent.post(`${h.oauthUrl}/resend-verification`, { username: ben.username }),
    ]
    const links = [login.link, (await h.mail.mailTo(ann.email ?? '')).link]
    links.push((await h.mail.mailTo(ben.email ?? '')).link)
    for (const { headers, text } of answers) {
      const everything = [...headers].flat().join('\n') + text
      for (const link of links) {
        expect(everything).not.to.include(tokenOf(link))
        expect(everything).not.to.include(sha256(tokenOf(link)))
      }
    }
    for (const { headers, text } of answers.slice(1)) {
      expect(headers.getSetCookie()).to.deep.equal([])
      expect(text).not.to.match(/[\w-]{43}/)
    }
  })

  it('is not consumed by HEAD and GET of a reset, whatever is asked and how often (TOK-19, VER-01)', async () => {
    const user = await addVerified(h)
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
    const user = await addVerified(h)
    const login = await blockedLogin(h)
    const link = await user.forgets()
    for (const [name, mailed] of [
      ['password_reset_tokens', link],
      ['email_verification_tokens', login.link],
    ] as const) {
      const tokens = databaseOf(h).collection<{ _id: string }>(name)
      const genuine = await tokens.findOne({ token_hash: sha256(tokenOf(mailed)) })
      if (!genuine) throw new Error('there is no record to copy')
      const { token_hash: _, live: _live, ...rest } = genuine as Record<string, unknown>
      const hashes = [undefined, null, '', {}, [], sha256(''), sha256('null'), sha256('undefined')]
      for (const [index, token_hash] of hashes.entries()) {
        const hash = token_hash === undefined ? {} : { token_hash }
        const copy = { ...rest, ...hash, _id: `${name}-${index}`, user_id: user.id }
        // The unique index holds missing and null for the same.
        await tokens.insertOne(copy).catch(() => {})
      }
      expect(await tokens.countDocuments({ _id: { $regex: `^${name}` } })).to.be.at.least(6)
    }
    for (const [what, query] of Object.entries(nothings)) {
      for (const page of ['reset-password', 'verify-email', 'not-me']) {
        const sig = new URL(login.link).searchParams.get('authorize_sig') ?? ''
        const url = `${h.oauthUrl}/${page}`
        for (const answer of [
          await agent.get(`${url}?${query}`),
          await agent.get(`${url}?${query}&authorize_sig=${sig}`),
          ...(page === 'verify-email'
            ? []
            : [await agent.post(url, `${query}&action=confirm&${PASSWORDS}`)]),
        ]) {
          expect(answer.status, `${what} at ${page}`).to.equal(400)
          expect(answer.location).to.equal(undefined)
        }
      }
    }
    expect(await user.hasPassword(PASSWORD)).to.equal(true)
    expect(await login.isVerified()).to.equal(false)
    await login.stillGetsIn()
    expect((await h.reset(link, NEW)).mode).to.equal('done')
  })

  it('a verification link whose time is no date, or is missing, is expired, and so is its answer', async () => {
    const login = await blockedLogin(h)
    const tokens = databaseOf(h).collection('email_verification_tokens')
    const token_hash = sha256(tokenOf(login.link))
    const record = await tokens.findOne({ token_hash })
    const later = new Date(Date.now() + 3_600_000)
    for (const damage of [
      { $unset: { expires_at: 1 } },
      ...[null, '', later.toISOString(), later.getTime(), [later], { $date: later }, true].map(
        (expires_at) => ({ $set: { expires_at } }),
      ),
      { $unset: { used_at: 1 } },
      { $set: { user_id: null } },
    ]) {
      await tokens.updateOne({ token_hash }, damage)
      const answer = await login.agent.get(login.link)
      expectExpired(answer)
      await login.getsNothing(answer)
      await tokens.replaceOne({ token_hash }, record ?? {})
    }
    await login.stillGetsIn()
  })

  it('and one that is removed while its link is used refuses the reset, or lets it be done whole (TOK-23)', async () => {
    const tokens = databaseOf(h).collection('password_reset_tokens')
    for (let round = 0; round < 12; round += 1) {
      const user = await addVerified(h)
      const link = await user.forgets()
      // What MongoDB itself removes: what nobody used for a week.
      const reap = () => tokens.deleteOne({ token_hash: sha256(tokenOf(link)), claimed_at: null })
      const isFirst = round === 0
      if (isFirst) await reap()
      const [{ mode, status }] = await Promise.all([h.reset(link, NEW), turns(round).then(reap)])
      expect(`${status} ${mode}`).to.be.oneOf(['400 invalid', ...(isFirst ? [] : ['200 done'])])
      expect(await user.hasPassword(NEW)).to.equal(mode === 'done')
      expect(await user.hasPassword(PASSWORD)).to.equal(mode !== 'done')
      const next = await user.forgets()
      expect((await h.reset(next, 'an honest password')).mode).to.equal('done')
      expect(await user.hasPassword('an honest password')).to.equal(true)
    }
  })

  it('and one that was removed refuses the verification, and a link that is sent again verifies (TOK-23)', async () => {
    const login = await blockedLogin(h)
    const tokens = databaseOf(h).collection('email_verification_tokens')
    await tokens.deleteOne({ token_hash: sha256(tokenOf(login.link)) })
    const answer = await login.agent.get(login.link)
    expectExpired(answer)
    await login.getsNothing(answer)
    const fresh = await login.asksAgain(answer.hidden)
    expect((await login.agent.get(fresh)).status).to.equal(302)
    await eventually('the address is verified', () => login.isVerified())
  })
})
