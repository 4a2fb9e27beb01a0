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
const WAITING = { pendingLoginId: 'a b&c', forMs: 86_400_000 }
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

describe('The window that waits', () => {
  for (const [page, locals] of Object.entries({
    blocked: { ...BLOCKED, waiting: WAITING },
    sent: { mode: 'sent', waiting: WAITING },
  } satisfies Record<string, PageLocals['verify-email']>)) {
    it(`in mode ${page} says that it waits, tells its script where to ask, and has a button without it`, () => {
      const { forms, withRole } = show('verify-email', locals)
      expect(DomUtils.textContent(withRole('status'))).to.equal('Waiting for your confirmation')
      const form = forms.find(({ action }) => action === '/oauth2/verify-email/waiting')
      expect(form?.fields).to.deep.equal({ login: 'a b&c' })
      expect(form?.buttons.map(({ type, disabled }) => [type, disabled])).to.deep.equal([
        ['submit', undefined],
      ])
      expect(form?.attribs).to.include({
        'data-status-url': '/oauth2/verify-email/status?login=a%20b%26c',
        'data-page-url': '/oauth2/verify-email/waiting?login=a%20b%26c',
        'data-for-ms': '86400000',
      })
      expect(withRole('alert')).to.have.length(0)
    })
  }

  it('takes the login along when a new link is asked for', () => {
    const { forms } = show('verify-email', { ...BLOCKED, carried: CARRIED, waiting: WAITING })
    const resend = forms.find(({ action }) => action === '/oauth2/resend-verification')
    expect(resend?.fields).to.deep.equal({ username: 'ada', login: 'a b&c', ...CARRIED_FIELDS })
  })

  it('says so when the address is not confirmed yet', () => {
    const locals = { ...BLOCKED, waiting: WAITING, isNotYet: true }
    const { withRole, forms } = show('verify-email', locals)
    expect(DomUtils.textContent(withRole('alert'))).to.equal(words['verify-email.blocked.refusal'])
    expect(forms.map(({ action }) => action)).to.include('/oauth2/verify-email/waiting')
  })

  it('says where the mail goes and who can change that, or that there is no address', () => {
    const waiting = { ...BLOCKED, waiting: WAITING }
    const [known, none] = [waiting, { ...waiting, sentTo: undefined }].map((locals) =>
      show('verify-email', locals).textOf('p'),
    )
    const {
      'verify-email.blocked.wrong_address': wrong,
      'verify-email.blocked.no_address': without,
    } = words
    expect(known).to.include(wrong).and.not.include(without)
    expect(known?.join()).to.include('a•••@e•••.com')
    expect(none).to.include(without).and.not.include(wrong)
    for (const key of ['lead', 'next'] as const) {
      const promise = words[`verify-email.blocked.${key}`]
      expect(known).to.include(promise)
      expect(none).to.not.include(promise)
    }
  })

  it('promises nothing where no login waits', () => {
    const { withRole, forms, html } = show('verify-email', BLOCKED)
    expect(withRole('status')).to.have.length(0)
    expect(forms.map(({ action }) => action)).to.deep.equal(['/oauth2/resend-verification'])
    expect(html).not.to.contain('data-status-url')
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

describe('The questions before a link is used', () => {
  it('say again what to do where nobody pressed the button', () => {
    const asked = (isNotYet: boolean) =>
      show('verify-email', { mode: 'confirm', link: LINK, isNotYet })
    expect(asked(false).withRole('alert')).to.have.length(0)
    expect(DomUtils.textContent(asked(true).withRole('alert'))).to.contain('press the button')
    for (const { forms } of [asked(false), asked(true)]) {
      expect(forms[0]?.action).to.equal('/oauth2/verify-email')
      expect(forms[0]?.buttons).to.deep.equal([
        { type: 'submit', name: 'action', value: 'confirm' },
      ])
    }
  })

  it('about the window that waited has one way on, with the login', () => {
    const locals = { mode: 'other_account', pendingLoginId: 'pending', session: 'uid' } as const
    const { forms } = show('verify-email', locals)
    const fields = { login: 'pending', session: 'uid' }
    expect(forms).to.have.length(1)
    expect(forms[0]).to.deep.include({ action: '/oauth2/verify-email/waiting', fields })
    const buttons = forms[0]?.buttons.map(({ name, value }) => [name, value])
    expect(buttons).to.deep.equal([['action', 'continue']])
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
    const { html } = show('verify-email', { ...BLOCKED, ...shown, waitMs: 30_000, isNotYet: true })
    const size = (text: string) => Buffer.byteLength(text)
    expect(size(views.script.text)).to.be.below(7_168)
    expect(size(html) + size(views.stylesheet.text) + size(views.script.text)).to.be.below(20_480)
  })
})
