import { expect } from 'chai'
import * as fc from 'fast-check'
import { parseFields } from '../../src/http/input.ts'
import { badForms } from './bad-forms.ts'
import { bearer } from '../support/admin.ts'
import { eventually } from '../support/eventually.ts'
import { CLIENT, onEachStore, suiteHarness } from '../support/harness.ts'
import type { ReceivedMail } from '../support/mail-server.ts'
import { ask, shapeOf, usableRecord, withoutMail } from '../support/observe.ts'
import { dump, type Stored } from '../support/records.ts'
import { notMeOf, type Person, tokenOf } from '../support/person.ts'
import { FORM, type RawAnswer, rawRequest } from '../support/raw-request.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { read, skeletonOf } from '../views/read-pages.ts'

const OF_THE_ATTACKER = 'a password of the attacker'

const NO_TOKEN = 'A'.repeat(43)

function shape({ status, headers: { date: _date, ...headers }, text }: RawAnswer) {
  return { status, headers, text }
}

onEachStore('Forms that are none (INJ)', (technology) => {
  const h = suiteHarness({ technology })
  let ann: Person
  let link: string
  let login: Person

  before(async () => {
    ann = await h.addUser({ username: 'ann' })
    await h.addUnverified({ username: 'una' })
    login = await h.blockedLogin()
    link = await ann.forgets()
    await h.isIdle()
  })

  // All but what comes and goes by the minute: the note of the keys in use, and the count of all mails.
  const passing = { key_rings: () => true, rate_limits: ({ key }: Stored) => key === 'mails:all' }

  async function state(): Promise<string> {
    const users = await Promise.all([ann.id, login.id].map((id) => h.users.findById(id)))
    return JSON.stringify([users, await usableRecord(h, link), await dump(h, passing)])
  }

  interface Endpoint {
    name: string
    /** The same field of the form: of somebody, and of nobody. */
    values: [hit: string, miss: string]
    others?: Record<string, string>
  }
  const [password, confirm_password] = [OF_THE_ATTACKER, OF_THE_ATTACKER]
  const endpoints: Record<string, () => Endpoint> = {
    'forgot-password': () => ({ name: 'identifier', values: ['ann', 'nobody'] }),
    'resend-verification': () => ({ name: 'username', values: ['una', 'nobody'] }),
    'reset-password': () => ({
      name: 'token',
      values: [tokenOf(link), NO_TOKEN],
      others: { password, confirm_password },
    }),
    'verify-email/waiting': () => ({
      name: 'login',
      values: [login.loginId(), 'x'.repeat(22)],
      others: { code: login.code },
    }),
  }

  for (const [path, endpoint] of Object.entries(endpoints)) {
    it(`are refused by ${path} alike for somebody and nobody, and change nothing (INJ-01, INJ-13, XSS-05)`, async () => {
      const before = await state()
      const { name, values, others = {} } = endpoint()
      const [hits, misses] = values.map((value) => badForms({ name, value, others }))
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

  it('do not matter beside the field: names of prototypes, empty names, 1,500 others (INJ-04, INJ-09)', async () => {
    const names = ['__proto__', 'constructor', 'hasOwnProperty', 'toString', '', 'get', 'has']
    const fields = [
      ...names.map((name) => `${name}=a`),
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
    const { text } = await createUserAgent().get(`${h.baseUrl}/admin/api/settings`, bearer)
    expect(text).not.to.match(/polluted|hasOwnProperty|__proto__/)
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

  it('keep request parameters the texts that they are (INJ-07, INJ-08)', async () => {
    const parameters = {
      client_id: 'app',
      redirect_uri: 'https://app.example/cb',
      scope: '{"$where":"sleep(1000)"}',
      state: '$set.a.b[$gt]{"$function":1}\u{1F511}',
    }
    const { reason } = await ask(h, 'ann', parameters)
    expect(reason).to.equal(undefined)
    link = h.mail.mails.at(-1)?.link ?? ''
    const { client_id: clientId, redirect_uri: redirectUri, scope, state } = parameters
    const kept = (await usableRecord(h, link))?.parameters
    expect(kept).to.deep.equal({ clientId, redirectUri, scope, state })
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

/** Some of what a host may have stored as an address, that is no plain one; test/settings/settings.test.ts has the others. */
const ADDRESSES: Record<string, string> = {
  'a line break and a header': 'victim@users.example\r\nBcc: attacker@evil.example',
  'a comma': 'victim@users.example,attacker@evil.example',
  'a display name': 'victim@users.example <attacker@evil.example>',
  'a domain literal': 'victim@[127.0.0.1]',
  'a full-width at sign': 'victim\uFF20users.example',
  NUL: 'victim@users.example\0@evil.example',
  '64 KiB': `${'a'.repeat(65_536)}@users.example`,
}

const NAMES: Record<string, string> = {
  'CR, LF and headers': 'ann\r\nBcc: attacker@evil.example\r\n\r\n<b>body</b>',
  'a line separator': 'ann\u2028Bcc: attacker@evil.example\u0085x',
  'an override of the direction': 'ann\u202Egpj.exe\u2066\u200F',
  'escapes of a terminal': 'ann\u001b[2J\u001b]8;;https://evil.example\u0007click',
  markup: '<a href="https://evil.example">click</a><img src=https://evil.example/x>',
  'an end of the page': '</p></td></table></body><script>alert(1)</script>',
  'an address of a page': 'ann https://evil.example/login?x=1 www.evil.example evil.example',
  'an address in other letters': 'https\uFF1A\uFF0F\uFF0Fevil\uFF0Eexample evil\u3002example',
  'an address of a mailbox': 'mailto:attacker@evil.example',
  'syntax of templates':
    '#{7007*7} !{7007*7} {{7007*7}} ${7007*7} <%= 7007*7 %> {link} {lead} $& $1',
  'a phishing text': `your account is locked, call us now ${'or lose everything '.repeat(20)}`,
  'quotes and commas': '"ann", \'x\' <ann@users.example>,',
  'an encoded word': '=?utf-8?B?QmNjOiB4QGV2aWwuZXhhbXBsZQ==?=',
  NUL: 'ann\0\0',
}

describe('An address that is not one plain address (MAIL-01, MAIL-02)', () => {
  const h = suiteHarness()
  before(() => h.addUser({ username: 'honest' }))

  it('gets no mail, and the same answer as any other, from either flow', async () => {
    const { answer: any } = await ask(h, 'nobody')
    const anyShape = shapeOf(any)
    await Promise.all(
      Object.entries(ADDRESSES).map(async ([what, email]) => {
        const user = await h.addVerified({ email })
        const byName = await ask(h, user.username)
        expect(byName.reason, what).to.equal('bad_address')
        expect(shapeOf(byName.answer), what).to.deep.equal(anyShape)
        expect(user.events('password_reset_mail_sent'), what).to.deep.equal([])
        // Typed, it is no name.
        if (email.length > 60_000 || email.includes('\0')) return
        const byEmail = await ask(h, email)
        expect(shapeOf(byEmail.answer), what).to.deep.equal(anyShape)
        expect(byEmail.reason, what).to.be.oneOf(['bad_address', 'unknown'])
      }),
    )
    await Promise.all(
      Object.entries(ADDRESSES).map(async ([what, email]) => {
        const user = await h.addUnverified({ email })
        expect((await user.signsIn()).mode, what).to.equal('blocked')
        await eventually(`${what}: no mail is sent`, () =>
          h.events.find((event) => event.accountId === user.id && event.reason === 'bad_address'),
        )
      }),
    )
    expect(h.mail.mails).to.deep.equal([])
  })

  it('nor does an address of nobody, so that nobody is mailed through us; an honest one does (MAIL-12)', async () => {
    for (const stranger of ['stranger@evil.example', 'honest@users.example,x@evil.example'])
      expect((await ask(h, stranger)).reason).to.equal('unknown')
    expect((await ask(h, 'honest')).reason).to.equal(undefined)
    expect(h.mail.mails.map(({ to }) => to)).to.deep.equal([['honest@users.example']])
  })
})

describe('Names that others chose, in a mail (MAIL-04, MAIL-05, MAIL-13)', () => {
  const clients = Object.values(NAMES).map((client_name, index) => ({
    ...CLIENT,
    client_id: `app-${index}`,
    client_name,
  }))
  const h = suiteHarness({ clients: [CLIENT, ...clients] })
  let plain: ReceivedMail

  const headersOf = ({ mail }: ReceivedMail) => mail.headerLines.map(({ key }) => key)

  function expectPlain(received: ReceivedMail, to: string) {
    const { mail } = received
    expect(received.to).to.deep.equal([to])
    expect(headersOf(received)).to.deep.equal(headersOf(plain))
    expect(mail.subject).to.equal(plain.mail.subject)
    const html = String(mail.html)
    expect(skeletonOf(html)).to.deep.equal(skeletonOf(String(plain.mail.html)))
    const text = mail.text ?? ''
    expect(text.split('\n\n')).to.have.length((plain.mail.text ?? '').split('\n\n').length)
    const addresses = [received.link, notMeOf(received)]
    expect(text.match(/https?:\/\/\S+/g)).to.deep.equal(addresses)
    const ours = [...addresses, /\d{1,2}:\d{2}(?=.[AP]M UTC)/]
    const theirs = ours.reduce<string>((rest, own) => rest.replace(own, ''), text)
    expect(theirs).not.to.match(/\w[.:\u3002\uFF0E\uFF1A](?=[^\s\u2060])/)
    expect(text.replaceAll('\n', '')).not.to.match(/[\p{Cc}\p{Bidi_Control}\u2028]/u)
    expect(text).not.to.match(/49049|or lose everything or lose everything or lose everything/)
    const links = read(html).find('a')
    expect(links.map(({ attribs }) => attribs['href'])).to.deep.equal(addresses)
    expect(mail.headerLines.map(({ line }) => line).join('\n')).not.to.match(/evil|ann/)
  }

  before(async () => {
    const redirect_uri = CLIENT.redirect_uris[0]
    const user = await h.addUser({ username: 'plain' })
    await user.forgets({ client_id: 'app', redirect_uri })
    plain = await user.mail()
    await Promise.all(
      Object.values(NAMES).map(async (username, index) => {
        const email = `named-${index}@users.example`
        await h.addUser({ username, email })
        const { reason } = await ask(h, email, { client_id: `app-${index}`, redirect_uri })
        expect(reason).to.equal(undefined)
      }),
    )
  })

  for (const [index, what] of Object.keys(NAMES).entries()) {
    it(`${what}: in one line, bounded, and no link in either part`, async () => {
      const email = `named-${index}@users.example`
      const received = await h.mail.mailTo(email)
      expectPlain(received, email)
      expect((await usableRecord(h, received.link))?.parameters.clientId).to.equal(`app-${index}`)
    })
  }

  it('whatever the name, its link sets a new password', async () => {
    expect((await h.reset(plain.link, 'a new password')).mode).to.equal('done')
    const { link } = await h.mail.mailTo('named-0@users.example')
    expect((await h.reset(link, 'a new password')).mode).to.equal('done')
  })
})

describe('Every mail (MAIL-09, MAIL-10, MAIL-11)', () => {
  const h = suiteHarness({ settings: { password_changed_email: 'true' } })

  it('says that a machine wrote it, names the domain of its sender alone, and loads nothing', async () => {
    const ann = await h.addUser({ username: 'ann' })
    await ann.getsBackIn('another password')
    await ann.mail(2)
    await h.blockedLogin()
    const kinds = h.mail.mails.map(({ kind }) => kind)
    expect(kinds).to.have.members(['password_reset', 'password_changed', 'email_verification'])
    for (const { mail, link: own, to, kind } of h.mail.mails) {
      expect(to).to.have.length(1)
      expect(mail.messageId).to.match(/^<[^@<>\s]+@idp\.example>$/)
      expect(mail.headers.get('auto-submitted')).to.equal('auto-generated')
      expect(mail.headers.get('x-auto-response-suppress')).to.equal('All')
      expect(mail.headers.has('x-mailer')).to.equal(false)
      expect(mail.attachments).to.deep.equal([])
      const html = String(mail.html)
      expect(html).not.to.match(/<(img|script|link|iframe|object|video)|url\(|\ssrc=|background=/i)
      const outside = `${mail.subject} ${mail.headerLines.map(({ line }) => line).join(' ')}`
      expect(outside).not.to.match(/localhost|127\.0\.0\.1/)
      const token = tokenOf(own)
      if (kind === 'password_changed') expect(token).to.equal('')
      else {
        expect((mail.text ?? '').split(token)).to.have.length(2)
        expect(html.split(token)).to.have.length(2)
        expect(outside).not.to.include(token)
      }
      expect(`${mail.text} ${html} ${outside}`).not.to.include('another password')
    }
  })
})

const wellFormed = fc.string({ unit: 'binary', maxLength: 40 })

const anything = fc.string({ unit: 'binary', maxLength: 200 })

const formLike = fc
  .array(
    fc.constantFrom(...'& = % + [ ] $gt %FF %ED%A0%80 %41 a __proto__ \0 ü \uD800 ;'.split(' ')),
    { maxLength: 40 },
  )
  .map((parts) => parts.join(''))

describe('The reader of forms, for every form there is', () => {
  it('gives back exactly the fields that a browser would send', () => {
    fc.assert(
      fc.property(fc.dictionary(wellFormed, wellFormed), (fields) => {
        const text = new URLSearchParams(fields).toString()
        expect([...(parseFields(text) ?? [])]).to.deep.equal(Object.entries(fields))
      }),
    )
  })

  it('never throws, never yields what is no well-formed text, and never a name twice', () => {
    fc.assert(
      fc.property(fc.oneof(anything, formLike), (text) => {
        const fields = parseFields(text)
        if (fields === undefined) return
        expect(fields).to.be.instanceOf(Map)
        for (const entry of fields) {
          for (const part of entry) expect(part).to.be.a('string')
        }
        const names = text
          .split('&')
          .filter((pair) => pair !== '')
          .map((pair) => decodeURIComponent((pair.split('=')[0] ?? '').replaceAll('+', ' ')))
        expect([...fields.keys()]).to.deep.equal(names)
      }),
      { numRuns: 2_000 },
    )
  })
})
