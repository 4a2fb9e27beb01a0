import { expect } from 'chai'
import { badForms, type HonestForm } from '../support/bad-forms.ts'
import { onBothStores } from '../support/both-stores.ts'
import { ADMIN_TOKEN, PASSWORD } from '../support/harness.ts'
import { isIdle } from '../support/jobs.ts'
import { ask, dump, usableRecord, withoutMail } from '../support/observe.ts'
import { FORM, rawRequest, type RawAnswer } from '../support/raw-request.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { addUnverified, blockedLogin, type Person, tokenOf } from '../support/person.ts'

const OF_THE_ATTACKER = 'a password of the attacker'
const NO_TOKEN = 'A'.repeat(43)

/** The same field of the form: of somebody, and of nobody. */
type Pair = [hit: HonestForm, miss: HonestForm]

function pair(name: string, hit: string, miss: string, others: Record<string, string> = {}): Pair {
  return [
    { name, value: hit, others },
    { name, value: miss, others },
  ]
}

function shape({ status, headers: { date: _date, ...headers }, text }: RawAnswer) {
  return { status, headers, text }
}

onBothStores('Forms that are none (INJ)', (technology) => {
  const h = suiteHarness({ technology })
  let ann: Person
  let link: string
  let login: Person

  before(async () => {
    ann = await h.addUser({ username: 'ann' })
    await addUnverified(h, { username: 'una' })
    login = await blockedLogin(h)
    link = await ann.forgets()
    await isIdle(h)
  })

  // All but what comes and goes by the minute: the note of the keys in use, and the count of all mails.
  const lasting = { key_rings: { key_ids: [] }, rate_limits: { key: { $ne: 'mails:all' } } }

  async function state(): Promise<string> {
    const users = await Promise.all([ann.id, login.id].map((id) => h.users.findById(id)))
    return JSON.stringify([users, await usableRecord(h, link), await dump(h, lasting)])
  }

  const endpoints: Record<string, () => Pair> = {
    'forgot-password': () => pair('identifier', 'ann', 'nobody'),
    'resend-verification': () => pair('username', 'una', 'nobody'),
    'reset-password': () =>
      pair('token', tokenOf(link), NO_TOKEN, {
        password: OF_THE_ATTACKER,
        confirm_password: OF_THE_ATTACKER,
      }),
    'verify-email/waiting': () =>
      pair('login', login.loginId(), 'x'.repeat(22), { code: login.code }),
  }

  for (const [path, formsOf] of Object.entries(endpoints)) {
    it(`are refused by ${path} alike for somebody and nobody, and change nothing (INJ-01, XSS-05)`, async () => {
      const before = await state()
      const [hits, misses] = formsOf().map((form) => badForms(form))
      for (const [index, [what, hit]] of (hits ?? []).entries()) {
        const miss = misses?.[index]?.[1] ?? {}
        const [one, other] = await withoutMail(h, async () => [
          await rawRequest(`${h.oauthUrl}/${path}`, hit),
          await rawRequest(`${h.oauthUrl}/${path}`, miss),
        ])
        expect(one?.status, what).to.be.within(400, 415)
        expect(one?.page, what).to.be.a('string')
        expect(one && shape(one), what).to.deep.equal(other && shape(other))
      }
      expect(await state()).to.equal(before)
    })
  }

  it('leave a password field that is no string unread: the token stays unspent', async () => {
    const token = tokenOf(link)
    for (const name of ['password', 'confirm_password']) {
      const other = name === 'password' ? 'confirm_password' : 'password'
      const others = { token, [other]: OF_THE_ATTACKER }
      for (const [what, form] of badForms({ name, value: OF_THE_ATTACKER, others })) {
        const { status } = await rawRequest(`${h.oauthUrl}/reset-password`, form)
        expect(status, `${name}: ${what}`).to.be.within(400, 415)
      }
    }
    expect(await ann.hasPassword(PASSWORD)).to.equal(true)
    expect((await createUserAgent().get(link)).mode).to.equal('form')
  })

  it('do not matter beside the field: names of prototypes, empty names, 1,500 others (INJ-04, INJ-09)', async () => {
    const fields = [
      ...'__proto__=a constructor=a hasOwnProperty=a toString=a valueOf=a =a get=a has=a'.split(
        ' ',
      ),
      '__proto__[polluted]=yes',
      'constructor[prototype][polluted]=yes',
      '$where=sleep(1000)',
      Array.from({ length: 1_500 }, (_, i) => `f${i}=${i}`).join('&'),
      `${'a['.repeat(200)}=1`,
      `x=${encodeURIComponent('\0\u{1F511}')}`,
    ]
    for (const field of fields) {
      const url = `${h.oauthUrl}/forgot-password`
      const answers = [
        await rawRequest(url, { body: `identifier=someone&${field}` }),
        await rawRequest(url, { body: `identifier=nobody&${field}`, isChunked: true }),
        await rawRequest(url, {
          body: `identifier=nobody&${field}`,
          headers: { 'content-type': FORM, expect: '100-continue' },
        }),
      ]
      for (const { status, mode } of answers)
        expect([status, mode], field.slice(0, 40)).to.deep.equal([200, 'sent'])
    }
    expect(Reflect.get({}, 'polluted')).to.equal(undefined)
    expect(Reflect.get({}, 'a')).to.equal(undefined)
    const settings = await fetch(`${h.baseUrl}/admin/api/settings`, {
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
    })
    expect(await settings.text()).not.to.match(/polluted|hasOwnProperty|__proto__/)
  })

  it('find nobody by a pattern, an operator or a query in the name itself (INJ-02, INJ-06)', async () => {
    const expressions = '.* ^ann ann|x an. a* (a+)+$ /ann/i ann.users.example'
    const patterns = [
      ...expressions.split(' '),
      '{"$ne":null}',
      '{"$regex":".*"}',
      ...'$where __proto__ constructor toString'.split(' '),
      '[object Object]',
      "' || '1'=='1",
    ]
    const mails = h.mail.mails.length
    await Promise.all(
      patterns.map(async (pattern) => {
        const { answer, reason } = await ask(h, pattern)
        const found = [answer.status, answer.mode, reason]
        expect(found, pattern).to.deep.equal([200, 'sent', 'unknown'])
      }),
    )
    expect(h.mail.mails).to.have.length(mails)
  })

  it('are refused with NUL, known or not, and nothing is done', async () => {
    const mails = h.mail.mails.length
    const events = h.events.length
    for (const [path, field] of [
      ['forgot-password', 'identifier'],
      ['resend-verification', 'username'],
    ] as const) {
      const answers = await Promise.all(
        ['ann\0', '\0ann', 'nobody\0', 'ann\0@users.example'].map((name) =>
          rawRequest(`${h.oauthUrl}/${path}`, { body: `${field}=${encodeURIComponent(name)}` }),
        ),
      )
      for (const { status, text } of answers) {
        expect(status).to.equal(400)
        expect(text).to.equal(answers[0]?.text)
      }
    }
    expect((await ask(h, 'ann')).reason).to.equal(undefined)
    expect(h.mail.mails).to.have.length(mails + 1)
    expect(h.events.slice(events).map(({ accountId }) => accountId)).to.not.include(undefined)
  })

  it('keep carried parameters the texts that they are (INJ-07, INJ-08)', async () => {
    const carried = {
      client_id: 'app',
      redirect_uri: 'https://app.example/cb',
      scope: '{"$where":"sleep(1000)"}',
      state: '$set.a.b[$gt]{"$function":1}\u{1F511}',
    }
    const { reason } = await ask(h, 'ann', carried)
    expect(reason).to.equal(undefined)
    link = h.mail.mails.at(-1)?.link ?? ''
    expect((await usableRecord(h, link))?.carried).to.deep.equal({
      clientId: 'app',
      redirectUri: 'https://app.example/cb',
      scope: carried.scope,
      state: carried.state,
    })
  })

  it('are no better as cookies: what was tampered with is ignored (INJ-11)', async () => {
    const values = [
      ...'{"$gt":""} %00 %FF "><script> __proto__ j%3A%7B%22%24gt%22%3A%22%22%7D'.split(' '),
      '[object Object]',
      'a'.repeat(4_000),
      '',
    ]
    const getWith = (cookie: string, url: string) =>
      rawRequest(url, { method: 'GET', headers: { cookie } })
    const names = ['_session', '_interaction', '_interaction_resume', '_session.sig', '__proto__']
    for (const name of names) {
      for (const cookie of [...values.map((value) => `${name}=${value}`), `${name}[$ne]=x`]) {
        for (const [path, expected] of [
          ['forgot-password', 200],
          ['verify-email?token=x', 400],
          ['reset-password?token=x', 400],
          ['not-me?token=x', 400],
        ] as const) {
          const { status } = await getWith(cookie, `${h.oauthUrl}/${path}`)
          expect(status, `${cookie} at ${path}`).to.equal(expected)
        }
      }
    }
    const { request } = login
    for (const cookie of names.map((name) => `${name}={"$gt":""}`)) {
      const { status, headers } = await getWith(cookie, request.url.href)
      expect(status, cookie).to.equal(303)
      expect(headers.location, cookie).to.include('/login?interaction=')
    }
  })

  it('leave everything as it was: honest requests work', async () => {
    await login.stillGetsIn()
    expect((await h.reset(link, 'a password of Ann')).mode).to.equal('done')
    expect(await ann.hasPassword('a password of Ann')).to.equal(true)
  })
})
