import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import type { NewMailJob, User } from '../../src/index.ts'
import { adminOf } from '../support/admin-calls.ts'
import { ADMIN_TOKEN } from '../support/harness.ts'
import type { ReceivedMail } from '../support/mail-server.ts'
import { blockedLogin, type Person } from '../support/person.ts'
import { createUserAgent, type UserAgent } from '../support/user-agent.ts'
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

const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:146.0) Gecko/20100101 Firefox/146.0'

describe('The language of a mail', () => {
  const h = suiteHarness({ settings: { password_changed_email: 'true' } })

  let people = 0
  const person = ({ user: locale }: Speaks = {}, more: Partial<User> = {}) =>
    h.addUser({ username: `reader-${(people += 1)}`, ...(locale && { locale }), ...more })
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
      const [known, waiting, other] = [
        await person(speaks),
        await unverified(speaks),
        await unverified(speaks),
      ]
      const reset = await requested('forgot-password', known, speaks)
      const agent = browserOf(speaks)
      const login = await blockedLogin(h, { user: waiting, agent, extra: fields(speaks) })
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

  it('of a link that is sent again is what the login asked for that waits for it', async () => {
    const user = await unverified({ user: 'es' })
    const login = await blockedLogin(h, { user, extra: { ui_locales: 'de' } })
    const received = await nextMail(login, () => login.presses('/resend-verification'))
    expect(localeOf(received)).to.equal('de')
    expect((await login.opensLink(received.link)).status).to.equal(302)
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

  it('names the browser that asked, and says nothing of one that it does not know', async () => {
    for (const [userAgent, told] of [
      [FIREFOX, /, with Firefox on Linux\. /],
      ['Firefox on Linux <https://evil.example>', / UTC\. /],
    ] as const) {
      const headers = { 'user-agent': userAgent }
      const { mail } = await requested('forgot-password', await person(), {}, headers)
      expect(oneLine(mail.text)).to.match(told)
      expect(`${mail.text} ${String(mail.html)}`).not.to.include('evil')
    }
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
