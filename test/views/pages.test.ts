import { expect } from 'chai'
import { DomUtils, parseDocument } from 'htmlparser2'
import {
  createViews,
  type Languages,
  type PageLocals,
  type PageName,
} from '../../src/views/index.ts'
import { words } from '../support/words.ts'

const VERIFICATION_REASONS = ['unknown', 'expired', 'used', 'changed'] as const
const RESET_REASONS = [...VERIFICATION_REASONS, 'superseded'] as const
const CARRIED = { clientId: 'shop', redirectUri: 'https://shop.example/cb', state: '' }
const CARRIED_FIELDS = { client_id: 'shop', redirect_uri: 'https://shop.example/cb', state: '' }
const LINK = { token: 'raw', carried: CARRIED, authorizeSig: 'sig' }
const CLIENT = { clientName: 'Shop', logo: '/logos/shop.png' }
const CLIENT_LINK = { ...CLIENT, href: 'https://shop.example/' }
const WAITING = 'a b&c'
const BLOCKED = {
  mode: 'blocked',
  username: 'ada',
  sentTo: 'ada@example.com',
  lifetimeMs: 3_600_000,
  carried: {},
} as const

const views = createViews('/oauth2')

function show<N extends PageName>(name: N, locals: PageLocals[N], languages?: Languages) {
  const { html } = views.page(name, locals, languages)
  const document = parseDocument(html)
  const find = (tag: string) => DomUtils.getElementsByTagName(tag, document)
  const textOf = (tag: string) => find(tag).map((element) => DomUtils.textContent(element))
  const withRole = (role: string) => find('*').filter(({ attribs }) => attribs['role'] === role)
  const forms = find('form').map((form) => ({
    action: form.attribs['action'],
    attribs: form.attribs,
    fields: Object.fromEntries(
      DomUtils.getElementsByTagName('input', form).map(({ attribs }) => [
        attribs['name'],
        attribs['value'],
      ]),
    ),
    buttons: DomUtils.getElementsByTagName('button', form).map((button) => button.attribs),
  }))
  const whole = DomUtils.textContent(find('body'))
  return { html, find, textOf, withRole, forms, whole }
}

describe('The page of a link that does not work', () => {
  const refused = {
    'reset-password': RESET_REASONS.map((reason) => ({
      reason,
      page: show('reset-password', { mode: 'invalid', reason, carried: CARRIED }),
    })),
    'verify-email': VERIFICATION_REASONS.map((reason) => ({
      reason,
      page: show('verify-email', { mode: 'expired', reason, carried: CARRIED }),
    })),
  }
  for (const [name, pages] of Object.entries(refused)) {
    it(`of ${name} says why, in words of its own for each reason, and offers the next step`, () => {
      const leads = pages.map(({ reason, page: { find, textOf, forms } }) => {
        expect(find('main')[0]?.attribs['data-reason']).to.equal(reason)
        const again = forms.length + find('a').filter(({ attribs }) => attribs['href']).length
        expect(again, reason).to.be.above(0)
        return `${textOf('h1').join('')} ${textOf('p')[0]}`
      })
      expect(new Set(leads).size).to.equal(pages.length)
    })
  }

  it('sends a new verification link at one click, and asks for no name', () => {
    const locals = { mode: 'expired', reason: 'expired', carried: CARRIED, renew: LINK } as const
    const { forms } = show('verify-email', locals)
    const fields = { token: 'raw', ...CARRIED_FIELDS, authorize_sig: 'sig' }
    expect(forms).to.have.length(1)
    expect(forms[0]).to.deep.include({ action: '/oauth2/resend-verification', fields })
  })

  it('sends a new reset link at one click, with the token and nothing else', () => {
    const locals = { mode: 'invalid', reason: 'expired', carried: CARRIED, renew: 'raw' } as const
    const { forms } = show('reset-password', locals)
    const fields = { token: 'raw' }
    expect(forms).to.have.length(1)
    expect(forms[0]).to.deep.include({ action: '/oauth2/forgot-password', fields })
  })

  it('is followed by a page in the same language', () => {
    for (const asked of views.locales) {
      const locals = { mode: 'expired', reason: 'used', carried: {} } as const
      const { forms } = show('verify-email', locals, { asked })
      expect(forms[0]?.fields['ui_locales']).to.equal(asked)
    }
  })

  it('asks for a name where no link is to be renewed, and leads on to the client', () => {
    const locals = { mode: 'expired', reason: 'used', carried: CARRIED } as const
    const { forms, find, textOf } = show('verify-email', { ...locals, client: CLIENT_LINK })
    expect(forms.map(({ fields }) => fields)).to.deep.equal([
      { ...CARRIED_FIELDS, username: undefined },
    ])
    expect(find('a').map(({ attribs }) => attribs['href'])).to.deep.equal(['https://shop.example/'])
    expect(textOf('a')).to.deep.equal(['Continue to Shop'])
  })
})

describe('The page that waits', () => {
  const waiting = { ...BLOCKED, waiting: WAITING }
  const formOf = (page: ReturnType<typeof show>) =>
    page.forms.find(({ action }) => action === '/oauth2/verify-email/waiting')

  for (const [mode, locals] of Object.entries({
    blocked: waiting,
    sent: { mode: 'sent', waiting: WAITING },
  } satisfies Record<string, PageLocals['verify-email']>)) {
    it(`in mode ${mode} has one field, for a code, and one button`, () => {
      const page = show('verify-email', locals)
      const form = formOf(page)
      expect(form?.fields).to.deep.equal({ login: 'a b&c', code: undefined })
      expect(form?.buttons).to.deep.equal([{ type: 'submit' }])
      const fields = page.find('input').filter(({ attribs }) => attribs['type'] !== 'hidden')
      expect(fields.map(({ attribs }) => attribs)).to.deep.equal([
        {
          class: 'code',
          id: 'code',
          type: 'text',
          name: 'code',
          inputmode: 'numeric',
          autocomplete: 'one-time-code',
          maxlength: '40',
          dir: 'ltr',
        },
      ])
      expect(form?.attribs['data-page-url']).to.equal(
        '/oauth2/verify-email/waiting?login=a%20b%26c',
      )
      expect(page.withRole('alert')).to.have.length(0)
    })
  }

  it('takes the login along when a new link is asked for', () => {
    const { forms } = show('verify-email', { ...waiting, carried: CARRIED })
    const resend = forms.find(({ action }) => action === '/oauth2/resend-verification')
    expect(resend?.fields).to.deep.equal({ username: 'ada', login: 'a b&c', ...CARRIED_FIELDS })
  })

  it('names the account, and folds what helps where no mail comes', () => {
    const { find, whole } = show('verify-email', { ...waiting, waitMs: 30_000 })
    expect(whole).to.include('signing in as ada')
    const [help] = find('details')
    expect(help?.attribs).not.to.have.property('open')
    const folded = help ? DomUtils.textContent(help) : ''
    for (const key of ['help', 'resend', 'wrong_address'] as const)
      expect(folded).to.include(words[`verify-email.blocked.${key}`])
  })

  const inAnHour = { reason: 'too_many', waitMs: 3_600_000 } as const
  const faults = [
    { reason: 'not_yet' },
    { reason: 'unread' },
    { reason: 'wrong' },
    inAnHour,
  ] as const
  for (const fault of faults)
    it(`says ${fault.reason} beside the field of the code, which has the focus and shows it no more`, () => {
      const page = show('verify-email', { ...waiting, fault })
      const field = page.find('input').find(({ attribs }) => attribs['name'] === 'code')
      expect(field?.attribs).to.include({
        'aria-invalid': 'true',
        'aria-describedby': 'code-hint',
        autofocus: '',
      })
      expect(field?.attribs).not.to.have.property('value')
      const hint = page.find('p').find(({ attribs }) => attribs['id'] === 'code-hint')
      const text = words[`verify-email.blocked.${fault.reason}`]
      expect(hint && DomUtils.textContent(hint)).to.equal(text?.replace('{time}', '60 minutes'))
      expect(page.withRole('alert')).to.have.length(0)
      expect(formOf(page)?.buttons).to.have.length(1)
    })

  it('says where the mail goes and who can change that, or that there is no address', () => {
    const [known, none] = [waiting, { ...waiting, sentTo: undefined }].map((locals) =>
      show('verify-email', locals),
    )
    const wrong = words['verify-email.blocked.wrong_address']
    expect(known?.whole).to.include(wrong).and.include('a•••@e•••.com')
    expect(none?.whole).to.include('the account ada has no email address').and.not.include(wrong)
    expect(none?.find('details')).to.have.length(0)
    expect(none && formOf(none)?.fields).to.deep.equal({ login: 'a b&c' })
  })

  it('asks for no code where no login waits', () => {
    const { forms } = show('verify-email', BLOCKED)
    expect(forms.map(({ action }) => action)).to.deep.equal(['/oauth2/resend-verification'])
  })
})

describe('The page of a link that was opened elsewhere', () => {
  const elsewhere = { mode: 'elsewhere', username: 'ada', client: CLIENT } as const

  it('shows the code as one run, read digit by digit, with account, client and time; it has no form', () => {
    const at = new Date('2026-01-02T15:04:00Z')
    for (const asked of views.locales) {
      const locals = { ...elsewhere, code: '042917', at }
      const { find, withRole, forms, textOf } = show('verify-email', locals, { asked })
      expect(withRole('img').map(({ attribs }) => attribs['aria-label'])).to.deep.equal([
        '0 4 2 9 1 7',
      ])
      const shown = find('p').find(({ attribs }) => attribs['class'] === 'code')
      expect(shown?.attribs['dir']).to.equal('ltr')
      expect(shown && DomUtils.textContent(shown)).to.equal('042917')
      expect(textOf('li').join()).to.match(/ada.*Shop.*UTC/s)
      expect(forms).to.deep.equal([])
    }
  })

  it('says until when no code is good, or that the login waits no more', () => {
    const late = show('verify-email', { ...elsewhere, code: '042917', waitMs: 3_600_000 })
    expect(late.whole).to.include('in 60 minutes')
    const over = show('verify-email', elsewhere)
    expect(over.whole).to.include(words['verify-email.elsewhere.over.lead'])
    expect(over.html).not.to.match(/\d{6}/)
  })
})

describe('The time until another mail may be asked for', () => {
  const told = (waitMs: number | undefined, asked = 'en') =>
    show('forgot-password', { mode: 'sent', carried: {}, waitMs }, { asked })
      .find('span')
      .map((span) => [span.attribs['data-seconds'], DomUtils.textContent(span)])

  it('is told in seconds and minutes, rounded up, and not at all when there is none', () => {
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
  })

  it('is told as people count who read the page', () => {
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

describe('The page of a link that was fetched ahead', () => {
  it('opens the link again by its button', () => {
    const { forms } = show('verify-email', { mode: 'confirm', link: LINK })
    const fields = { token: 'raw', ...CARRIED_FIELDS, authorize_sig: 'sig' }
    expect(forms).to.have.length(1)
    expect(forms[0]).to.deep.include({ action: '/oauth2/verify-email', fields })
    expect(forms[0]?.attribs['method']).to.equal('get')
    expect(forms[0]?.buttons).to.deep.equal([{ type: 'submit' }])
  })
})

describe('The client that a page is part of a login to', () => {
  it('is named, apart from the direction of the text around it, with its logo', () => {
    const { find, textOf } = show('forgot-password', { mode: 'form', carried: {}, client: CLIENT })
    expect(textOf('bdi')).to.deep.equal(['Shop'])
    expect(find('img').map(({ attribs }) => attribs)).to.deep.equal([
      { src: '/logos/shop.png', width: '40', height: '40', alt: '' },
    ])
  })

  it('has no picture where it has no logo, and no place where there is none', () => {
    const client = { clientName: 'S' }
    const named = show('forgot-password', { mode: 'form', carried: {}, client })
    expect(named.textOf('bdi')).to.deep.equal(['S'])
    expect(named.find('img')).to.have.length(0)
    expect(show('forgot-password', { mode: 'form', carried: {} }).find('bdi')).to.have.length(0)
  })
})

describe('The rule for a new password', () => {
  it('says nothing of bytes, in no language, until a password is too long for them', () => {
    const limits = { token: 'raw', minLength: 1, maxLength: 64 }
    for (const asked of views.locales) {
      const form = show('reset-password', { mode: 'form', ...limits }, { asked }).whole
      expect(form.match(/\d+/g), asked).to.have.members(['1', '64'])
      const refused = { mode: 'password_too_long', ...limits, excess: 4 } as const
      expect(show('reset-password', refused, { asked }).whole, asked).to.match(/\b4\b/)
    }
  })
})

describe('A page', () => {
  it('is small, with its style sheet and its script', () => {
    const shown = { carried: CARRIED, client: CLIENT, waiting: WAITING }
    const fault = { reason: 'too_many', waitMs: 3_600_000 } as const
    const { html } = show('verify-email', { ...BLOCKED, ...shown, waitMs: 30_000, fault })
    const size = (text: string) => Buffer.byteLength(text)
    expect(size(views.script.text)).to.be.below(7_168)
    expect(size(html) + size(views.stylesheet.text) + size(views.script.text)).to.be.below(20_480)
  })
})
