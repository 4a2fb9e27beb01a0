import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { expect } from 'chai'
import { simpleParser } from 'mailparser'
import type { User } from '../../src/index.ts'
import type { OutgoingMail } from '../../src/mail/sending.ts'
import type { NewMailJob } from '../../src/store/index.ts'
import { memoryMailbox } from '../../src/mail/smtp/transport.ts'
import { adminOf } from '../support/admin.ts'
import { ADMIN_TOKEN, suiteHarness } from '../support/harness.ts'
import { answers, type Fault, type ReceivedMail } from '../support/mail-server.ts'
import type { Person } from '../support/person.ts'
import { createUserAgent, type UserAgent } from '../support/user-agent.ts'
import {
  failureOf,
  MAIL,
  NO_LOGIN,
  noSignal,
  SENDER,
  sendThrough,
  suiteSmtp,
  type SmtpSettings,
} from './smtp-suite.ts'

const MALFORMED = ['victim@example.com\r\nBcc: x@evil.example', 'a@x.io,b@x.io', '<a@b.io>', '']

describe('A mail over SMTP', () => {
  const { start: startServer, senderFor } = suiteSmtp()

  function startMailer(server: { port: number }, settings: Partial<SmtpSettings> = {}) {
    const sender = senderFor(server, { ...NO_LOGIN, ...settings })
    return { send: (mail: OutgoingMail) => sendThrough(sender, mail) }
  }

  it('hands over a text part and an HTML part, from one plain address to one other (MAIL-06)', async () => {
    let greeting = ''
    const listens: Fault = (step, { line }) => {
      if (step === 'EHLO') greeting = line
      return undefined
    }
    const server = await startServer({ fault: listens })
    const { send } = startMailer(server)
    await send({ ...MAIL, kind: 'password_reset' })
    await send(MAIL)
    const [taken] = server.mails
    expect(taken).to.deep.include({ from: SENDER, to: ['Ada@example.org'] })
    const [mail, other] = await Promise.all(server.mails.map(({ raw }) => simpleParser(raw)))
    expect(mail?.subject).to.equal('Set a new password')
    expect(mail?.text?.trim()).to.equal(MAIL.text)
    expect(mail?.html).to.contain('<a href="https://id.example.com/x?token=t1">this</a>')
    const sender = [{ address: SENDER, name: '' }]
    expect(mail?.from?.value).to.deep.equal(sender)
    const kinds = [mail, other].map((each) => each?.headers.get('x-account-flows-mail'))
    expect(kinds, 'its kind, where it has one').to.deep.equal(['password_reset', undefined])
    expect(greeting).to.equal('EHLO login.example.com')
    expect(taken?.raw, 'nothing about this machine').not.to.contain(hostname())
  })

  it('keeps an id of the answer, and nothing of the mail that was put into one', async () => {
    const token = 'Xy0-'.repeat(10) + 'abc'
    const text = `Open https://id.example.com/x?token=${token} now.`
    const said: [answer: string, queueId: string | undefined][] = [
      ['queued as 4Fx1', '4Fx1'],
      ['OK id=1rPq2X-0004Ab-3C', '1rPq2X-0004Ab-3C'],
      [`queued as x${token}`, undefined],
      [`queued as x${token.slice(0, 30)}`, undefined],
      [`queued as ${'9'.repeat(41)}x`, undefined],
      [`thanks for ${token}1 and ${token.slice(3)}x`, undefined],
    ]
    for (const [answer, queueId] of said) {
      const server = await startServer({ fault: answers('dot', `250 2.0.0 ${answer}`) })
      const receipt = await sendThrough(senderFor(server), { ...MAIL, text })
      expect(receipt?.queueId, answer).to.equal(queueId)
      expect(JSON.stringify(receipt)).to.not.include(token.slice(0, 20))
      const mail = await simpleParser(server.mails[0]?.raw ?? '')
      expect(receipt?.messageId, answer).to.equal(mail.messageId)
    }
  })

  it('brings any text as it was written, in short lines of ASCII, and no line break of a subject into the headers', async () => {
    const server = await startServer()
    const text = `日本語 ${'é'.repeat(300)}  \n.\n--=_x\r\n\tعربى = ${'a'.repeat(2_000)} 😀\n`
    const html = `<p>${text}</p>`
    const subject = `パスワード ${'ü'.repeat(80)}`
    const name = 'Ärzte" <evil@evil.example>, "Co'
    await startMailer(server, { fromName: name }).send({ ...MAIL, subject, text, html })
    const raw = server.mails[0]?.raw ?? ''
    expect(raw).to.match(/^[\t\r\n -~]*$/)
    expect(Math.max(...raw.split('\r\n').map(({ length }) => length))).to.be.at.most(76)
    // As the receiving side takes the second dot away.
    const mail = await simpleParser(raw.replaceAll('\r\n..', '\r\n.'))
    expect(mail.text).to.equal(text.replaceAll('\r\n', '\n'))
    expect(mail.html).to.equal(html.replaceAll('\r\n', '\n'))
    expect(mail.subject).to.equal(subject)
    expect(mail.from?.value).to.deep.equal([{ name, address: SENDER }])

    const injecting = { ...MAIL, subject: 'Hello\r\nBcc: x@evil.example\r\n\r\nbody' }
    await startMailer(server).send(injecting)
    const taken = server.mails[1]
    const whole = await simpleParser(taken?.raw ?? '')
    expect(taken?.to).to.deep.equal(['Ada@example.org'])
    expect(whole.headers.has('bcc')).to.equal(false)
    expect(whole.text?.trim()).to.equal(MAIL.text)
  })

  it('refuses a recipient that is not one plain address before it says anything, and such a sender before it connects', async () => {
    const server = await startServer()
    const { send } = startMailer(server)
    for (const to of MALFORMED) {
      const { code, message } = await failureOf(send({ ...MAIL, to }))
      expect(code, JSON.stringify(to)).to.equal('ERR_MAIL_ADDRESS')
      expect(message).to.equal('The recipient is not one plain address')
    }
    await send(MAIL)
    expect([server.connections, server.logins, server.steps.MAIL]).to.deep.equal([1, [], 1])
    expect(server.mails.map(({ to }) => to)).to.deep.equal([[MAIL.to]])
    const injecting = startMailer(server, { from: 'a@x.example\r\nX-Injected: 1' })
    expect((await failureOf(injecting.send(MAIL))).code).to.equal('ERR_MAIL_FAILED')
    expect(server.connections).to.equal(1)
  })
})

describe('memoryMailbox', () => {
  it('keeps the newest mails, newest first, each with a time and an id', async () => {
    const mailbox = memoryMailbox({ limit: 2 })
    for (const subject of ['one', 'two', 'three']) {
      const mail = { ...MAIL, subject, headers: {} }
      expect(await mailbox.send(mail, noSignal())).to.deep.equal({ accepted: true })
    }
    const messages = mailbox.messages()
    expect(messages.map(({ subject }) => subject)).to.deep.equal(['three', 'two'])
    expect(new Set(messages.map(({ id }) => id)).size).to.equal(2)
    expect(messages[0]?.receivedAt).to.be.instanceOf(Date)
    expect(messages[0]).to.deep.include({ ...MAIL, subject: 'three' })
  })
})

const LOCALES = ['en', 'de', 'fr', 'es', 'ar', 'pt-BR', 'it', 'nl', 'ja', 'zh-Hans'] as const
type Locale = (typeof LOCALES)[number]

const WORDS = new Map(
  LOCALES.map((locale) => {
    const file = new URL(`../../views/locales/${locale}.json`, import.meta.url)
    return [locale, JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>]
  }),
)

/** The locale whose words a mail says, in its subject and in both of its parts. */
function localeOf({ mail, kind }: ReceivedMail): Locale | undefined {
  const html = String(mail.html)
  return LOCALES.find((locale) => {
    const words = WORDS.get(locale) ?? {}
    const name = String(kind).replace('_', '-')
    return (
      mail.subject === words[`mail.${name}.subject`] &&
      oneLine(mail.text).includes(words[`mail.${name}.open`] ?? '?') &&
      html.includes(`lang="${locale}" dir="${locale === 'ar' ? 'rtl' : 'ltr'}"`)
    )
  })
}

const oneLine = (text = '') => text.replaceAll('\n', ' ').trim()

/** What speaks for a language, from the strongest to the weakest. */
interface Speaks {
  asked?: string
  user?: string
  accepted?: string
}

const ROWS: [string, Speaks, Locale][] = [
  ['the request asks, and others say another', { asked: 'de', user: 'fr', accepted: 'es' }, 'de'],
  ['the account has one, and the browser says another', { user: 'ar', accepted: 'es' }, 'ar'],
  ['only the browser says one', { accepted: 'fy, es-MX;q=0.8, de;q=0.2' }, 'es'],
  ['nothing says any', {}, 'en'],
]

const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:146.0) Gecko/20100101 Firefox/146.0'

describe('The language of a mail', () => {
  const h = suiteHarness({ settings: { password_changed_email: 'true' } })

  const person = ({ user: locale }: Speaks = {}, more: Partial<User> = {}) =>
    h.addVerified({ ...(locale && { locale }), ...more })
  const unverified = (speaks: Speaks = {}) => person(speaks, { emailVerified: false })

  const fields = ({ asked }: Speaks): Record<string, string> =>
    asked === undefined ? {} : { ui_locales: asked }

  /** A browser that says what it accepts with everything. */
  function browserOf({ accepted }: Speaks): UserAgent {
    const agent = createUserAgent()
    const headers = accepted === undefined ? {} : { 'accept-language': accepted }
    return {
      ...agent,
      get: (url, more) => agent.get(url, { ...headers, ...more }),
      post: (url, form, more) => agent.post(url, form, { ...headers, ...more }),
    }
  }

  async function nextMail(user: Person, ask: () => Promise<unknown>): Promise<ReceivedMail> {
    const before = user.mailCount()
    await ask()
    return user.mail(before + 1)
  }

  /** The mail to somebody who asks for a link without a login. */
  const requested = (
    path: 'forgot-password' | 'resend-verification',
    user: Person,
    speaks: Speaks = {},
    headers = {},
  ) =>
    nextMail(user, () => {
      const name = path === 'forgot-password' ? 'identifier' : 'username'
      const form = { [name]: user.username, ...fields(speaks) }
      return browserOf(speaks).post(`${h.oauthUrl}/${path}`, form, headers)
    })

  for (const [what, speaks, expected] of ROWS) {
    it(`is ${expected} where ${what}: of forgot-password, of a login that has to wait, and of resend-verification`, async () => {
      const known = await person(speaks)
      const [waiting, other] = [await unverified(speaks), await unverified(speaks)]
      const reset = await requested('forgot-password', known, speaks)
      const agent = browserOf(speaks)
      const login = await h.blockedLogin({ user: waiting, agent, extra: fields(speaks) })
      const resent = await requested('resend-verification', other, speaks)
      const locales = [reset, await login.mail(), resent].map(localeOf)
      expect(locales).to.deep.equal([expected, expected, expected])
      expect((await known.choosesPassword('a new password', reset.link)).mode).to.equal('done')
      expect((await login.opensLink()).status).to.equal(302)
      expect((await other.opensLink(resent.link)).mode).to.equal('verified')
    })
  }

  it('is that of the account in each kind of mail, over SMTP, and in what an admin looks at, for each that there is', async () => {
    for (const locale of LOCALES) {
      const user = await person({ user: locale })
      const reset = await requested('forgot-password', user)
      const notice = await nextMail(user, () => user.choosesPassword('a new password', reset.link))
      const resent = await requested('resend-verification', await unverified({ user: locale }))
      const mails = [reset, notice, resent]
      expect(mails.map(localeOf)).to.deep.equal([locale, locale, locale])
      for (const { line } of mails.flatMap(({ mail }) => mail.headerLines))
        expect(line).to.match(/^[\t\r\n\x20-\x7E]+$/)

      const preview = await adminOf(h).previewMail({ template: 'password-reset', locale })
      expect(preview.subject).to.equal(WORDS.get(locale)?.['mail.password-reset.subject'])
      expect(preview.html).to.include(`lang="${locale}"`)
      expect(oneLine(preview.text)).to.match(/Firefox.*Linux|Linux.*Firefox/)
    }
  })

  for (const [speaks, expected] of [
    [{ accepted: 'fr' }, 'fr'],
    [{ user: 'ar', accepted: 'fr' }, 'ar'],
    [{}, 'en'],
  ] as const) {
    it(`that tells of a reset is that of whoever set the password, unless the account has one: ${expected}`, async () => {
      const user = await person(speaks)
      const { link } = await requested('forgot-password', user, { accepted: 'de' })
      const browser = user.in(browserOf(speaks))
      const notice = await nextMail(user, () => browser.choosesPassword('a new password', link))
      await browser.sees('reset-password', 'done')
      expect([notice.kind, localeOf(notice)]).to.deep.equal(['password_changed', expected])
    })
  }

  for (const [speaks, expected] of [
    [{ user: 'de' }, 'de'],
    [{}, 'en'],
  ] as const) {
    for (const [path, name, opened] of [
      ['send-reset', 'password-reset', 'form'],
      ['send-verification', 'email-verification', 'verified'],
    ] as const) {
      it(`that an admin has sent (${path}) is the language of the account or the default, never the admin’s: ${expected}`, async () => {
        const user = await person(speaks, { emailVerified: path === 'send-reset' })
        const received = await nextMail(user, async () => {
          const response = await fetch(`${h.baseUrl}/admin/api/users/${path}`, {
            method: 'POST',
            headers: {
              authorization: `Bearer ${ADMIN_TOKEN}`,
              'content-type': 'application/json',
              'accept-language': 'es',
              'user-agent': FIREFOX,
            },
            body: JSON.stringify({ id: user.id }),
          })
          expect(response.ok, await response.clone().text()).to.equal(true)
        })
        expect(localeOf(received)).to.equal(expected)
        const lead = WORDS.get(expected)?.[`mail.${name}.lead_admin`]
        expect(oneLine(received.mail.text)).to.include(lead)
        expect(received.mail.text).not.to.match(/Firefox|Linux/)
        expect((await user.opensLink(received.link)).mode).to.equal(opened)
      })
    }
  }

  it('names the browser that asked', async () => {
    const headers = { 'user-agent': FIREFOX }
    const { mail } = await requested('forgot-password', await person(), {}, headers)
    expect(oneLine(mail.text)).to.match(/, with Firefox on Linux\. /)
  })

  it('is in no audit event, and of what was sent no more than tags is stored', async () => {
    const user = await person()
    const accepted = `de-CH, <b>;q=0.9, ${'x'.repeat(500)}, fr-CH;q=0.3`
    const stored: NewMailJob[] = []
    const { add } = h.store.outbox
    h.store.outbox.add = (job) => {
      stored.push(job)
      return add(job)
    }
    const asked = `fr-BE ${'y'.repeat(500)}`
    await requested('forgot-password', user, { asked, accepted })
    const audited = JSON.stringify(h.events)
    expect(audited).to.include(user.id)
    expect(audited).not.to.match(/de-CH|fr-BE|uiLocales|acceptLanguage|isAdmin/)
    expect(stored).to.have.length(1)
    expect(JSON.stringify([stored, h.events])).not.to.match(/x{50}|y{50}|q=0/)
    for (const type of ['password_reset_requested', 'password_reset_mail_sent'])
      expect(h.events.some((event) => event.type === type)).to.equal(true)
  })
})
