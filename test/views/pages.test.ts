import { expect } from 'chai'
import { DomUtils } from 'htmlparser2'
import { MAIL_KINDS, mailTemplates } from '../../src/contract/mail-kinds.ts'
import {
  createViews,
  type MailName,
  type PageLocals,
  type PageName,
} from '../../src/views/index.ts'
import type { Languages } from '../../src/views/languages.ts'
import { PAGES_WITH_PASSWORD, SAMPLE_PAGES } from '../../src/views/page-locals.ts'
import { words } from '../support/words.ts'
import { read, samplePages, skeletonOf } from './read-pages.ts'

const PAYLOADS = [
  '"><script>alert(1)</script>',
  "'><img src=x onerror=alert(1)>",
  '" autofocus onfocus="alert(1)',
  "' onmouseover='alert(1)",
  '</title></h1></main></form><form action="https://evil.example"><input name=token>',
  '<a href="https://evil.example">Sign in</a>',
  '<!--',
  '<meta http-equiv="refresh" content="0;url=https://evil.example">',
  '<base href="https://evil.example/"><style>*{display:none}</style>',
  '{"a":["<b>"]}',
  'javascript:alert(1)//<b>',
  '\u202Eevil\u2066<b>\u200B',
  ']]><svg/onload=alert(1)>',
  '&quot;&gt;&lt;script&gt;&#60;b&#62;',
  '#{7007*7} !{7007*7} {{7007*7}} ${7007*7} <%= 7007*7 %>',
  '{link} {lead} {user} {client} {min}',
  '$& $1 $` $$',
  '`-alert(1)-`</textarea></script>',
  '`${alert(1)}`',
]
const VERIFICATION_REASONS = ['unknown', 'expired', 'used', 'changed'] as const
const RESET_REASONS = [...VERIFICATION_REASONS, 'superseded'] as const
const MAILED = 'https://id.example.com/oauth2/reset-password?token=Zm9vYmFy&x=1'
const LIMITS = { token: 't', minLength: 8, maxLength: 64 }
const REQUEST_PARAMETERS = { clientId: 'shop', redirectUri: 'https://shop.example/cb', state: '' }
const PARAMETER_FIELDS = { client_id: 'shop', redirect_uri: 'https://shop.example/cb', state: '' }
const CLIENT = { clientName: 'Shop', logo: '/logos/shop.png' }

const WAITING = 'a b&c'
const BLOCKED = {
  mode: 'blocked',
  username: 'ada',
  sentTo: 'ada@example.com',
  lifetimeMs: 3_600_000,
  parameters: {},
} as const

const views = createViews('/oauth2')

function show<N extends PageName>(
  name: N,
  locals: PageLocals[N],
  languages?: Languages,
  from = views,
) {
  const page = read(from.page(name, locals, languages).html)
  const { find } = page
  const withRole = (role: string) => find('*').filter(({ attribs }) => attribs['role'] === role)
  const forms = find('form').map((form) => ({
    action: form.attribs['action'],
    attribs: form.attribs,
    fields: valuesOf(DomUtils.getElementsByTagName('input', form)),
    buttons: DomUtils.getElementsByTagName('button', form).map((button) => button.attribs),
  }))
  const hidden = valuesOf(find('input').filter(({ attribs }) => attribs['type'] === 'hidden'))
  return { ...page, withRole, forms, hidden }
}

function valuesOf(inputs: ReturnType<typeof DomUtils.getElementsByTagName>) {
  return Object.fromEntries(inputs.map(({ attribs }) => [attribs['name'], attribs['value']]))
}

/** Every page in every mode and for every reason, with `value` in every place that takes a text from outside. */
function everyPage(value: string) {
  return samplePages.map(({ name, locals: sample }) => {
    const locals = withTexts(sample, value)
    const { mode } = locals
    const reason = 'reason' in locals ? locals.reason : undefined
    const label = `${name} ${JSON.stringify(sample)}`
    return { name, mode, reason, label, ...show(name, locals) }
  })
}

function withTexts<T>(sample: T, value: string): T {
  /** Texts of our own, and those of which only a part is from outside. */
  const others: Record<string, string | undefined> = {
    mode: undefined,
    reason: undefined,
    also: undefined,
    code: undefined,
    logo: `/logos/${value}`,
    href: `https://shop.example/?${value}`,
  }
  function placed(old: unknown, name: string): unknown {
    if (typeof old === 'string') return name in others ? (others[name] ?? old) : value
    if (Array.isArray(old)) return old.map((each) => placed(each, name))
    if (typeof old !== 'object' || old === null || old instanceof Date) return old
    return Object.fromEntries(Object.entries(old).map(([key, each]) => [key, placed(each, key)]))
  }
  return placed(sample, '') as T
}

describe('Every page', () => {
  const pages = everyPage('plain')

  it('with a field for a password, and no other, is one that no opener may navigate', () => {
    const withField = pages.filter(({ find }) =>
      find('input').some(({ attribs }) => attribs['type'] === 'password'),
    )
    const names = new Set(withField.map(({ name }) => name))
    expect([...names]).to.have.members(PAGES_WITH_PASSWORD)
  })

  it('is one whole page that says what it is, also without a path prefix', () => {
    for (const { name, mode, reason, label, find, textOf, whole } of pages) {
      expect(find('main')[0]?.attribs, label).to.deep.equal({
        'data-page': name,
        'data-mode': mode,
        ...(reason && { 'data-reason': reason }),
      })
      expect(find('html').map(({ attribs }) => attribs)).to.deep.equal([{ lang: 'en', dir: 'ltr' }])
      expect(find('h1'), label).to.have.length(1)
      expect(textOf('h1').length, label).to.be.above(5)
      expect(textOf('title'), label).to.contain(textOf('h1'))
      const paragraphs = find('p').filter(({ attribs }) => attribs['class'] !== 'code')
      for (const paragraph of paragraphs)
        expect(DomUtils.textContent(paragraph).length, label).to.be.above(10)
      const meta = find('meta').map(({ attribs }) => [attribs['name'], attribs['content']])
      expect(meta, label).to.deep.include.members([
        ['robots', 'noindex'],
        ['referrer', 'no-referrer'],
      ])
      expect(find('link').map(({ attribs }) => attribs['href'])).to.deep.equal([
        `/oauth2/account-flows.css?v=${views.stylesheet.version}`,
        `/oauth2/account-flows.svg?v=${views.favicon.version}`,
      ])
      expect(whole, label).not.to.match(/undefined|null|NaN|\[object|[{}]/)
    }
    const locals = { mode: 'expired', reason: 'unknown', parameters: {} } as const
    const atRoot = show('verify-email', locals, {}, createViews(''))
    expect(atRoot.forms[0]?.action).to.equal('/resend-verification')
    const [sheet] = atRoot.find('link')
    expect(sheet?.attribs['href']).to.match(/^\/account-flows\.css\?v=[\w-]{12}$/)
  })

  it('has a picture that says what its title says: green where something is done, red where something is wrong', () => {
    const withIcon = (icon: string) => {
      const shown = pages.filter(({ find }) => find('svg')[0]?.attribs['class'] === `icon ${icon}`)
      const names = shown.map(({ name, mode, reason }) => [name, reason ?? mode].join(' '))
      return [...new Set(names)].filter((each) => !each.startsWith('error '))
    }
    expect(withIcon('good')).to.have.members([
      'reset-password done',
      'accept-invitation done',
      'verify-email used',
      'verify-email verified',
      'verify-email signed_in',
    ])
    const unknown = pages.filter(({ reason }) => reason === 'unknown').map(({ name }) => name)
    expect(unknown).to.include.members(['reset-password', 'accept-invitation', 'verify-email'])
    const bad = [...new Set(unknown)].map((name) => `${name} unknown`)
    expect(withIcon('bad')).to.have.members(bad).and.include('not-me unknown')
    const over = show('verify-email', { mode: 'elsewhere', username: 'ada' })
    expect(over.find('svg')[0]?.attribs['class']).to.equal('icon late')
  })

  it('labels each field, has what describes it, and says where its forms go', () => {
    for (const { name, mode, label, find, forms, all } of pages) {
      const ids = all.flatMap(({ attribs }) => attribs['id'] ?? [])
      expect(new Set(ids).size, label).to.equal(ids.length)
      // It opens the link again, as the reader would.
      const isLink = name === 'verify-email' && mode === 'confirm'
      for (const { attribs } of forms) {
        expect(attribs['method'], label).to.equal(isLink ? 'get' : 'post')
        expect(attribs['action'], label).to.match(/^\/oauth2\/[a-z-]+(\/waiting)?$/)
      }
      for (const { attribs } of find('input')) {
        if (attribs['type'] === 'hidden' || 'hidden' in attribs) continue
        expect(find('label').map((label) => label.attribs['for'])).to.include(attribs['id'])
        expect(attribs['id'], label).to.equal(attribs['name'])
      }
      const described = all.flatMap(({ attribs }) => attribs['aria-describedby']?.split(' ') ?? [])
      expect(ids, label).to.include.members(described)
    }
  })

  const skeletons = pages.map(({ html }) => skeletonOf(html))

  const mailed = (name: MailName) =>
    Object.values(MAIL_KINDS).find(({ template }) => template === name)

  /** With `value` in every place that takes a text from outside. */
  function mailWith(name: MailName, value: string) {
    const apps = { notified: { names: [value], more: 1 }, notNotified: { names: [value], more: 0 } }
    const texts = { username: value, clientName: value, userAgent: value, apps }
    const lives = mailed(name)?.link ? { lifetimeMs: 3_600_000 } : {}
    const given =
      name === 'signs-in-elsewhere' ? { link: '', signsInElsewhere: value } : { link: MAILED }
    return views.mail(name, { at: new Date(0), ...given, ...texts, ...lives })
  }

  for (const payload of PAYLOADS) {
    it(`keeps ${JSON.stringify(payload)} a text in every place, of pages and of mails (XSS-01)`, () => {
      for (const [index, page] of everyPage(payload).entries()) {
        expect(skeletonOf(page.html), page.label).to.deep.equal(skeletons[index])
        const { action: _ours, ...hidden } = page.hidden
        for (const value of Object.values(hidden)) expect(value, page.label).to.equal(payload)
      }
      for (const name of mailTemplates) {
        const [plain, hostile] = [mailWith(name, 'plain'), mailWith(name, payload)]
        expect(skeletonOf(hostile.html)).to.deep.equal(skeletonOf(plain.html))
        expect(hostile.subject).to.equal(plain.subject)
        expect(hostile.text.split('\n\n')).to.have.length(plain.text.split('\n\n').length)
        expect(hostile.text.split(MAILED)).to.have.length(mailed(name)?.page ? 2 : 1)
        expect(hostile.text).not.to.match(/49049/)
      }
    })
  }
})

describe('The page for a new password', () => {
  type Mode = Exclude<PageLocals['reset-password']['mode'], 'invalid' | 'done'>
  const reset = (mode: Mode) => show('reset-password', { mode, ...LIMITS, excess: 4 })

  /** What is told as wrong, by the field that it is beside. */
  function faultsOn({ all }: ReturnType<typeof show>): Record<string, string> {
    const hints = all.filter(({ attribs }) => attribs['class'] === 'hint fault')
    return Object.fromEntries(
      hints.map((hint) => [hint.attribs['id']?.replace('-hint', ''), DomUtils.textContent(hint)]),
    )
  }

  it('has two fields, described by the rule, which tell their limits to browsers and password managers', () => {
    const { find } = reset('form')
    const fields = find('input').filter(({ attribs }) => attribs['type'] === 'password')
    const names = fields.map(({ attribs }) => attribs['name'])
    expect(names).to.deep.equal(['password', 'confirm_password'])
    for (const { attribs } of fields) {
      expect(attribs).to.include({
        minlength: '8',
        passwordrules: 'minlength: 8; maxlength: 64;',
        'aria-describedby': `${attribs['name']}-hint rule`,
      })
    }
  })

  const modes = Object.values(SAMPLE_PAGES['reset-password']).map(([sample]) => sample?.mode)
  const refusals = modes.filter((mode) => mode?.startsWith('password_')) as Mode[]
  for (const mode of refusals) {
    it(`shows the same form again after ${mode}, with what is wrong`, () => {
      const { find, textOf, hidden } = reset(mode)
      const wrong = mode === 'password_mismatch' ? 'confirm_password' : 'password'
      expect(textOf('title')).to.equal('Error: Set a new password')
      expect(faultsOn(reset(mode))).to.have.all.keys([wrong])
      for (const { attribs } of find('input').filter((input) => input.attribs['id'])) {
        expect(attribs['aria-invalid']).to.equal(attribs['id'] === wrong ? 'true' : undefined)
        // Both are to be typed anew; the first has the focus, and tells the fault.
        const isFirst = attribs['id'] === 'password'
        expect('autofocus' in attribs).to.equal(isFirst)
        if (isFirst) expect(attribs['aria-describedby']?.split(' ')).to.include(`${wrong}-hint`)
      }
      expect(hidden).to.deep.equal({ token: 't' })
    })
  }

  it('says nothing of bytes, in no language, until a password is too long for them', () => {
    const limits = { token: 'raw', minLength: 1, maxLength: 64 }
    for (const asked of views.locales) {
      const form = show('reset-password', { mode: 'form', ...limits }, { asked }).whole
      expect(form.match(/\d+/g), asked).to.have.members(['1', '64'])
      const refused = { mode: 'password_too_long', ...limits, excess: 4 } as const
      expect(show('reset-password', refused, { asked }).whole, asked).to.match(/\b4\b/)
    }
  })

  it('leads on to the client when it is set, and otherwise back to the app (XSS-06)', () => {
    const done = (href?: string) => {
      const client = href === undefined ? {} : { client: { clientName: 'Shop', href } }
      return show('reset-password', { mode: 'done', ...client })
    }
    const genuine = ['https://shop.example/cb?a=1', 'http://127.0.0.1/', 'com.example.app:/cb']
    for (const href of genuine) {
      const { find, textOf } = done(href)
      expect(find('a')[0]?.attribs).to.include({ href, rel: 'noreferrer' })
      expect(textOf('a')).to.equal('Continue to Shop')
    }
    for (const href of [
      undefined,
      'javascript:alert(1)',
      'JaVaScRiPt:alert(1)',
      'java\tscript:alert(1)',
      ' \u0001javascript:alert(1)',
      'data:text/html,<script>alert(1)</script>',
      'vbscript:msgbox(1)',
      'blob:https://shop.example/1',
      'file:///etc/passwd',
      '//evil.example',
      '/\\evil.example',
      'myapp:/cb',
    ]) {
      expect(done(href).find('a'), href).to.have.length(0)
      expect(done(href).whole).to.contain('Go back to the app')
    }
  })
})

describe('The page of a link that does not work', () => {
  it('says why, in words of its own for each reason, and offers the next step', () => {
    const parameters = REQUEST_PARAMETERS
    for (const pages of [
      RESET_REASONS.map((reason) =>
        show('reset-password', { mode: 'invalid', reason, parameters }),
      ),
      VERIFICATION_REASONS.map((reason) =>
        show('verify-email', { mode: 'expired', reason, parameters }),
      ),
    ]) {
      const leads = pages.map(
        ({ find, textOf }) => textOf('h1') + DomUtils.textContent(find('p')[0] ?? []),
      )
      expect(new Set(leads).size).to.equal(pages.length)
      for (const { find, forms } of pages) {
        const links = find('a').filter(({ attribs }) => attribs['href'])
        expect(forms.length + links.length).to.be.above(0)
      }
    }
  })
})

describe('The page that waits', () => {
  const waiting = { ...BLOCKED, waiting: WAITING }
  const formOf = (page: ReturnType<typeof show>) =>
    page.forms.find(({ action }) => action === '/oauth2/verify-email/waiting')

  const FIELD = {
    class: 'code',
    id: 'code',
    type: 'text',
    name: 'code',
    inputmode: 'numeric',
    autocomplete: 'one-time-code',
    maxlength: '40',
    dir: 'ltr',
  }
  for (const locals of [waiting, { mode: 'sent', waiting: WAITING } as const]) {
    it(`in mode ${locals.mode} has one field, for a code, and one button`, () => {
      const page = show('verify-email', locals)
      const form = formOf(page)
      expect(form?.fields).to.deep.equal({ login: 'a b&c', code: undefined })
      expect(form?.buttons).to.deep.equal([{ type: 'submit' }])
      const fields = page.find('input').filter(({ attribs }) => attribs['type'] !== 'hidden')
      expect(fields.map(({ attribs }) => attribs)).to.deep.equal([FIELD])
      const pageUrl = '/oauth2/verify-email/waiting?login=a%20b%26c'
      expect(form?.attribs['data-page-url']).to.equal(pageUrl)
      expect(page.withRole('alert')).to.have.length(0)
    })
  }

  it('takes the login along when a new link is asked for, and asks for no code where none waits', () => {
    const { forms } = show('verify-email', { ...waiting, parameters: REQUEST_PARAMETERS })
    const resend = forms.find(({ action }) => action === '/oauth2/resend-verification')
    expect(resend?.fields).to.deep.equal({ username: 'ada', login: 'a b&c', ...PARAMETER_FIELDS })
    const alone = show('verify-email', BLOCKED).forms
    expect(alone.map(({ action }) => action)).to.deep.equal(['/oauth2/resend-verification'])
  })

  for (const fault of [
    { reason: 'not_yet' },
    { reason: 'unread' },
    { reason: 'wrong' },
    { reason: 'too_many', waitMs: 3_600_000 },
  ] as const)
    it(`says ${fault.reason} beside the field of the code, which has the focus and shows it no more`, () => {
      const page = show('verify-email', { ...waiting, fault })
      const field = page.find('input').find(({ attribs }) => attribs['name'] === 'code')
      const told = { 'aria-invalid': 'true', 'aria-describedby': 'code-hint', autofocus: '' }
      expect(field?.attribs).to.include(told).and.not.have.property('value')
      const hint = page.find('p').find(({ attribs }) => attribs['id'] === 'code-hint')
      const text = words[`verify-email.blocked.${fault.reason}`]
      expect(hint && DomUtils.textContent(hint)).to.equal(text?.replace('{time}', '60 minutes'))
      expect(page.withRole('alert')).to.have.length(0)
      expect(formOf(page)?.buttons).to.have.length(1)
    })

  it('names the account, says where the mail goes and who can change that, or that there is no address, and folds what helps where no mail comes', () => {
    const { find, whole } = show('verify-email', { ...waiting, waitMs: 30_000 })
    expect(whole).to.include('signing in as ada')
    const [help] = find('details')
    expect(help?.attribs).not.to.have.property('open')
    const folded = help ? DomUtils.textContent(help) : ''
    for (const key of ['help', 'resend', 'wrong_address'] as const)
      expect(folded).to.include(words[`verify-email.blocked.${key}`])
    const known = show('verify-email', waiting)
    const none = show('verify-email', { ...waiting, sentTo: undefined })
    const wrong = words['verify-email.blocked.wrong_address']
    expect(known.whole).to.include(wrong).and.include('a•••@example.com')
    expect(none.whole).to.include('the account ada has no email address').and.not.include(wrong)
    expect(none.find('details')).to.have.length(0)
    expect(formOf(none)?.fields).to.deep.equal({ login: 'a b&c' })
  })

  it('tells how long a link works', () => {
    for (const [lifetimeMs, expected] of [
      [3_600_000, '1 hour'],
      [86_400_000, '24 hours'],
      [7 * 86_400_000, '7 days'],
      [90 * 60_000, '90 minutes'],
      [25 * 3_600_000, '25 hours'],
      [60_000, '1 minute'],
      [90_000, '90 seconds'],
      [2_500, '2 seconds'],
      [3_600_000 + 59_999, '1 hour'],
    ] as const) {
      const { whole } = show('verify-email', { ...BLOCKED, lifetimeMs })
      expect(whole).to.contain(`A link works for ${expected}.`)
    }
  })
})

describe('The page of a link that was opened elsewhere', () => {
  const elsewhere = { mode: 'elsewhere', username: 'ada', client: CLIENT } as const

  it('shows the code as one run, read digit by digit, with account, client and time; it has no form', () => {
    const locals = { ...elsewhere, code: '042917', at: new Date('2026-01-02T15:04:00Z') }
    for (const asked of views.locales) {
      const { find, withRole, forms, textOf } = show('verify-email', locals, { asked })
      const read = withRole('img').map(({ attribs }) => attribs['aria-label'])
      expect(read).to.deep.equal(['0 4 2 9 1 7'])
      const shown = find('p').find(({ attribs }) => attribs['class'] === 'code')
      expect(shown?.attribs['dir']).to.equal('ltr')
      expect(shown && DomUtils.textContent(shown)).to.equal('042917')
      expect(textOf('li')).to.match(/ada.*Shop.*UTC/s)
      expect(forms).to.deep.equal([])
    }
  })
})

describe('The time until another mail may be asked for', () => {
  const told = (waitMs: number | undefined, asked = 'en') =>
    show('forgot-password', { mode: 'sent', parameters: {}, waitMs }, { asked })
      .find('span')
      .map((span) => [span.attribs['data-seconds'], DomUtils.textContent(span)])

  it('is told in seconds and minutes, rounded up, as people count who read the page; not at all when there is none', () => {
    for (const [waitMs, seconds, text] of [
      [1, '1', '1 second'],
      [1_001, '2', '2 seconds'],
      [90_000, '90', '90 seconds'],
      [90_001, '91', '2 minutes'],
      [600_000, '600', '10 minutes'],
    ] as const) {
      expect(told(waitMs)).to.deep.equal([[seconds, text]])
    }
    for (const none of [undefined, 0, -1]) expect(told(none)).to.deep.equal([])
    for (const lang of views.locales) {
      const style = { style: 'unit', unit: 'second', unitDisplay: 'long' } as const
      const time = new Intl.NumberFormat(lang, style).format(42)
      expect(told(42_000, lang)).to.deep.equal([['42', time]])
    }
  })

  it('leaves the button usable, as it counts down only with a script', () => {
    const { forms, whole } = show('verify-email', { ...BLOCKED, waitMs: 30_000 })
    expect(whole).to.contain('30 seconds')
    expect(forms[0]?.buttons[0]).to.include({ 'aria-describedby': 'wait' })
    expect(forms[0]?.buttons[0]).not.to.have.property('disabled')
  })
})
