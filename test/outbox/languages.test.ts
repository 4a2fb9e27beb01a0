import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import type { NewMailJob, User } from '../../src/index.ts'
import { adminOf } from '../support/admin.ts'
import { blockedLogin, mailsTo } from '../support/blocked-login.ts'
import { ADMIN_TOKEN } from '../support/harness.ts'
import type { ReceivedMail } from '../support/mail-server.ts'
import { createUserAgent, type Answer, type UserAgent } from '../support/user-agent.ts'
import { suiteHarness } from '../support/suite-harness.ts'

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
  ['the request asks for one of several that there is', { asked: 'fy ar', user: 'fr' }, 'ar'],
  ['the request asks for none that there is', { asked: 'fy', user: 'fr', accepted: 'es' }, 'fr'],
  ['the request asks for garbage', { asked: '<b>\r\nBcc: x', user: 'fr', accepted: 'es' }, 'fr'],
  ['the account has one, and the browser says another', { user: 'ar', accepted: 'es' }, 'ar'],
  ['the account has none that there is', { user: 'fy', accepted: 'es;q=0.5, fr-CH' }, 'fr'],
  ['only the browser says one', { accepted: 'fy, es-MX;q=0.8, de;q=0.2' }, 'es'],
  ['the request asks for another country’s', { asked: 'pt-PT', user: 'fr' }, 'pt-BR'],
  ['the account has another country’s', { user: 'zh_SG', accepted: 'fr' }, 'zh-Hans'],
  ['the browser wants another script', { accepted: 'zh-TW, zh;q=0.9, nl-BE;q=0.8' }, 'nl'],
  ['nothing says any', {}, 'en'],
]

describe('The language of a mail', () => {
  const h = suiteHarness({ settings: { password_changed_email: 'true' } })

  let people = 0
  function person({ user: locale }: Speaks, more: Partial<User> = {}): Promise<User> {
    people += 1
    return h.addUser({ username: `reader-${people}`, ...(locale && { locale }), ...more })
  }

  const headers = ({ accepted }: Speaks): Record<string, string> =>
    accepted === undefined ? {} : { 'accept-language': accepted }
  const fields = ({ asked }: Speaks): Record<string, string> =>
    asked === undefined ? {} : { ui_locales: asked }

  /** A browser that says what it accepts with everything. */
  function browserOf(speaks: Speaks): UserAgent {
    const agent = createUserAgent()
    return {
      ...agent,
      get: (url, more) => agent.get(url, { ...headers(speaks), ...more }),
      post: (url, form, more) => agent.post(url, form, { ...headers(speaks), ...more }),
    }
  }

  async function nextMail(user: User, ask: () => Promise<unknown>): Promise<ReceivedMail> {
    const before = mailsTo(h, user)
    await ask()
    return h.mail.mailTo(user.email ?? '', before + 1)
  }

  function forgot(user: User, speaks: Speaks): Promise<Answer> {
    const form = { identifier: user.username, ...fields(speaks) }
    return browserOf(speaks).post(`${h.oauthUrl}/forgot-password`, form)
  }

  for (const [what, speaks, expected] of ROWS) {
    it(`is ${expected} where ${what}: of forgot-password, of a login that has to wait, and of resend-verification`, async () => {
      const known = await person(speaks)
      const reset = await nextMail(known, () => forgot(known, speaks))
      const [waiting, other] = [
        await person(speaks, { emailVerified: false }),
        await person(speaks, { emailVerified: false }),
      ]
      const agent = browserOf(speaks)
      await blockedLogin(h, { user: waiting, agent, extra: fields(speaks) })
      const blocked = await h.mail.mailTo(waiting.email ?? '')
      const form = { username: other.username, ...fields(speaks) }
      const resent = await nextMail(other, () =>
        browserOf(speaks).post(`${h.oauthUrl}/resend-verification`, form),
      )
      const locales = [reset, blocked, resent].map(localeOf)
      expect(locales).to.deep.equal([expected, expected, expected])
      expect((await h.reset(reset.link, 'a new password')).mode).to.equal('done')
      expect((await agent.get(blocked.link)).status).to.equal(302)
      expect((await createUserAgent().get(resent.link)).mode).to.equal('verified')
    })
  }

  it('is that of the account in each kind of mail, over SMTP, for each that there is', async () => {
    for (const locale of LOCALES) {
      const user = await person({ user: locale })
      const reset = await nextMail(user, () => forgot(user, {}))
      const notice = await nextMail(user, () => h.reset(reset.link, 'a new password'))
      const other = await person({ user: locale }, { emailVerified: false })
      const resent = await nextMail(other, () =>
        createUserAgent().post(`${h.oauthUrl}/resend-verification`, { username: other.username }),
      )
      const mails = [reset, notice, resent]
      expect(mails.map(localeOf)).to.deep.equal([locale, locale, locale])
      for (const { line } of mails.flatMap(({ mail }) => mail.headerLines))
        expect(line).to.match(/^[\t\r\n\x20-\x7E]+$/)
    }
  })

  it('of a link that is sent again is what the login asked for that waits for it', async () => {
    const user = await person({ user: 'es' }, { emailVerified: false })
    const { agent, blocked } = await blockedLogin(h, { user, extra: { ui_locales: 'de' } })
    const received = await nextMail(user, () =>
      agent.post(`${h.oauthUrl}/resend-verification`, blocked.hidden),
    )
    expect(localeOf(received)).to.equal('de')
    expect((await agent.get(received.link)).status).to.equal(302)
  })

  it('that tells of a reset is that of whoever set the password, unless the account has one', async () => {
    for (const [speaks, expected] of [
      [{ accepted: 'fr' }, 'fr'],
      [{ user: 'ar', accepted: 'fr' }, 'ar'],
      [{}, 'en'],
    ] as const) {
      const user = await person(speaks)
      const { link } = await nextMail(user, () => forgot(user, { accepted: 'de' }))
      const notice = await nextMail(user, async () => {
        const token = new URL(link).searchParams.get('token') ?? ''
        const form = { token, password: 'a new password', confirm_password: 'a new password' }
        const answer = await browserOf(speaks).post(`${h.oauthUrl}/reset-password`, form)
        expect(answer.mode).to.equal('done')
      })
      expect([notice.kind, localeOf(notice)]).to.deep.equal(['password_changed', expected])
    }
  })

  it('that an admin has sent is the language of the account or the default, never the admin’s', async () => {
    for (const [speaks, expected] of [
      [{ user: 'de' }, 'de'],
      [{}, 'en'],
    ] as const) {
      for (const path of ['send-reset', 'send-verification'] as const) {
        const user = await person(speaks, { emailVerified: path === 'send-reset' })
        const received = await nextMail(user, () => sendAsAdmin(user, path))
        expect(localeOf(received)).to.equal(expected)
        const words = WORDS.get(expected) ?? {}
        const name = path === 'send-reset' ? 'password-reset' : 'email-verification'
        expect(oneLine(received.mail.text)).to.include(words[`mail.${name}.lead_admin`])
        expect(received.mail.text).not.to.match(/Firefox|Windows/)
        const { mode } = await createUserAgent().get(received.link)
        expect(mode).to.equal(path === 'send-reset' ? 'form' : 'verified')
      }
    }
  })

  async function sendAsAdmin(user: User, path: 'send-reset' | 'send-verification') {
    const response = await fetch(`${h.baseUrl}/admin/api/users/${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${ADMIN_TOKEN}`,
        'content-type': 'application/json',
        'accept-language': 'es',
        'user-agent':
          'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:146.0) Gecko/20100101 Firefox/146.0',
      },
      body: JSON.stringify({ id: user.id }),
    })
    expect(response.ok, await response.clone().text()).to.equal(true)
  }

  it('names the browser that asked, and says nothing of one that it does not know', async () => {
    const form = (user: User) => ({ identifier: user.username })
    const url = `${h.oauthUrl}/forgot-password`
    const firefox = 'Mozilla/5.0 (X11; Linux x86_64; rv:146.0) Gecko/20100101 Firefox/146.0'
    for (const [userAgent, told] of [
      [firefox, /, with Firefox on Linux\. /],
      ['Firefox on Linux <https://evil.example>', / UTC\. /],
    ] as const) {
      const user = await person({})
      const { mail } = await nextMail(user, () =>
        createUserAgent().post(url, form(user), { 'user-agent': userAgent }),
      )
      expect(oneLine(mail.text)).to.match(told)
      expect(`${mail.text} ${String(mail.html)}`).not.to.include('evil')
    }
  })

  it('can be looked at by an admin, for each that there is', async () => {
    for (const locale of LOCALES) {
      const preview = await adminOf(h).previewMail({ template: 'password-reset', locale })
      expect(preview.subject).to.equal(WORDS.get(locale)?.['mail.password-reset.subject'])
      expect(preview.html).to.include(`lang="${locale}"`)
      expect(oneLine(preview.text)).to.match(/Firefox.*Linux|Linux.*Firefox/)
    }
  })

  it('is in no audit event, and of what was sent no more than tags is stored', async () => {
    const user = await person({})
    const accepted = `de-CH, <b>;q=0.9, ${'x'.repeat(500)}, fr-CH;q=0.3`
    const stored: NewMailJob[] = []
    const { add } = h.store.outbox
    h.store.outbox.add = (job) => {
      stored.push(job)
      return add(job)
    }
    await nextMail(user, () => forgot(user, { asked: `fr-BE ${'y'.repeat(500)}`, accepted }))
    const audited = JSON.stringify(h.events)
    expect(audited).to.include(user.id)
    expect(audited).not.to.match(/de-CH|fr-BE|uiLocales|acceptLanguage|isAdmin/)
    expect(stored).to.have.length(1)
    expect(JSON.stringify([stored, h.events])).not.to.match(/x{50}|y{50}|q=0/)
    for (const type of ['password_reset_requested', 'password_reset_mail_sent'])
      expect(h.events.some((event) => event.type === type)).to.equal(true)
  })
})
