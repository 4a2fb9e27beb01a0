import { expect } from 'chai'
import { DomUtils, parseDocument } from 'htmlparser2'
import type { CarriedParameters } from '../../src/ports/index.ts'
import {
  createViews,
  type CodeFault,
  type ErrorMode,
  type MailName,
  type PageLocals,
  type PageName,
} from '../../src/views/index.ts'
import type { LinkReason } from '../../src/ports/links.ts'
import { words } from '../support/words.ts'

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
const REASONS: LinkReason[] = [...VERIFICATION_REASONS, 'superseded']
const FAULTS: CodeFault[] = [
  { reason: 'not_yet' },
  { reason: 'unread' },
  { reason: 'wrong' },
  { reason: 'too_many', waitMs: 3_600_000 },
]
const REFUSALS = [
  'password_mismatch',
  'password_too_short',
  'password_too_long',
  'password_invalid',
  'password_common',
  'password_personal',
  'password_current',
  'password_host',
] as const
const ERRORS: ErrorMode[] = [
  'refused',
  'not_found',
  'method_not_allowed',
  'unsupported_media_type',
  'body_too_large',
  'bad_request',
  'too_many_requests',
  'unavailable',
  'error',
]
const LINK = 'https://id.example.com/oauth2/reset-password?token=Zm9vYmFy&x=1'
const LIMITS = { token: 't', minLength: 8, maxLength: 64 }
const EDGE =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/143.0.0.0 Safari/537.36 Edg/143.0.0.0'
const NOT_ME = 'https://id.example.com/oauth2/not-me?t=Zm9v'
const LINK_MAILS: MailName[] = ['password-reset', 'email-verification', 'invitation']
const MAILS: MailName[] = [...LINK_MAILS, 'password-changed']

const views = createViews('/oauth2')

function page<N extends PageName>(name: N, locals: PageLocals[N]): string {
  return views.page(name, locals).html
}

describe('pages', () => {
  for (const { name, mode, reason, label, html } of renderAll('plain')) {
    it(`${label} is one whole page that says what it is`, () => {
      const { main, find, document } = read(html)
      expect(main.attribs).to.deep.equal({
        'data-page': name,
        'data-mode': mode,
        ...(reason && { 'data-reason': reason }),
      })
      expect(find('html').map(({ attribs }) => attribs)).to.deep.equal([{ lang: 'en', dir: 'ltr' }])
      expect(find('h1')).to.have.length(1)
      expect(text(find('h1')).length).to.be.above(5)
      expect(text(find('title'))).to.contain(text(find('h1')))
      const paragraphs = find('p').filter(({ attribs }) => attribs['class'] !== 'code')
      expect(paragraphs.every((paragraph) => text([paragraph]).length > 10)).to.equal(true)
      const meta = Object.fromEntries(
        find('meta').map(({ attribs }) => [attribs['name'], attribs['content']]),
      )
      expect(meta).to.include({ robots: 'noindex', referrer: 'no-referrer' })
      expect(find('link').map(({ attribs }) => attribs['href'])).to.deep.equal([
        `/oauth2/account-flows.css?v=${views.stylesheet.version}`,
        `/oauth2/account-flows.svg?v=${views.favicon.version}`,
      ])
      expect(DomUtils.textContent(document)).not.to.match(/undefined|null|NaN|\[object|[{}]/)
    })

    it(`${label} needs no exception from a strict content security policy`, () => {
      const { find, all } = read(html)
      for (const forbidden of ['style', 'iframe', 'object', 'base', 'noscript']) {
        expect(find(forbidden)).to.have.length(0)
      }
      // Of our own: they name nothing and load nothing.
      expect(find('svg').length).to.be.at.most(1)
      for (const drawing of find('svg')) {
        expect(drawing.attribs).to.include({ 'aria-hidden': 'true' })
        const [path, ...others] = DomUtils.getElementsByTagName('*', drawing.children)
        expect([path?.name, Object.keys(path?.attribs ?? {}), others]).to.deep.equal([
          'path',
          ['d'],
          [],
        ])
      }
      const scripts = find('script')
      expect(scripts.map(({ attribs }) => attribs)).to.deep.equal([
        { type: 'module', src: `/oauth2/account-flows.js?v=${views.script.version}` },
      ])
      expect(text(scripts)).to.equal('')
      expect(all.flatMap(({ attribs }) => Object.keys(attribs)).join(' ')).not.to.match(
        /\bstyle\b|\bon\w+/,
      )
    })

    it(`${label} labels each field and says where its forms go`, () => {
      const { find, all } = read(html)
      const ids = all.flatMap(({ attribs }) => attribs['id'] ?? [])
      expect(new Set(ids).size).to.equal(ids.length)
      for (const form of find('form')) {
        // It opens the link again, as the reader would.
        expect(form.attribs['method']).to.equal(mode === 'confirm' ? 'get' : 'post')
        expect(form.attribs['action']).to.match(/^\/oauth2\/[a-z-]+(\/waiting)?$/)
      }
      for (const { attribs } of find('input')) {
        if (attribs['type'] === 'hidden' || 'hidden' in attribs) continue
        expect(find('label').map((label) => label.attribs['for'])).to.include(attribs['id'])
        expect(attribs['id']).to.equal(attribs['name'])
      }
      const described = all.flatMap(({ attribs }) => attribs['aria-describedby']?.split(' ') ?? [])
      expect(ids).to.include.members(described)
    })
  }

  const plain = renderAll('plain')
  for (const payload of PAYLOADS) {
    it(`keep ${JSON.stringify(payload)} a text in every place`, () => {
      for (const [index, { label, html }] of renderAll(payload).entries()) {
        expect(skeleton(html), label).to.deep.equal(skeleton(plain[index]?.html ?? ''))
        for (const [field, value] of Object.entries(hiddenFields(html))) {
          expect(value, `${label} ${field}`).to.equal(payload)
        }
      }
    })
  }

  it('carry the OAuth 2.0 parameters, an absent one differently from an empty one', () => {
    const fields = (carried: CarriedParameters) =>
      hiddenFields(page('forgot-password', { mode: 'form', carried }))
    expect(fields({})).to.deep.equal({})
    expect(fields({ clientId: 'c', redirectUri: 'r', scope: 'o p', state: 's' })).to.deep.equal({
      client_id: 'c',
      redirect_uri: 'r',
      scope: 'o p',
      state: 's',
    })
    expect(fields({ state: '' })).to.deep.equal({ state: '' })
  })

  it('work without a path prefix', () => {
    const { find } = read(
      createViews('').page('verify-email', { mode: 'expired', reason: 'unknown', carried: {} })
        .html,
    )
    expect(find('form')[0]?.attribs['action']).to.equal('/resend-verification')
    expect(find('link')[0]?.attribs['href']).to.match(/^\/account-flows\.css\?v=[\w-]{12}$/)
  })

  it('tell the length rule before the new password is typed', () => {
    const { find } = read(reset('form'))
    const fields = find('input').filter(({ attribs }) => attribs['type'] === 'password')
    expect(fields.map(({ attribs }) => attribs['name'])).to.deep.equal([
      'password',
      'confirm_password',
    ])
    for (const { attribs } of fields) {
      expect(attribs).to.include({
        autocomplete: 'new-password',
        minlength: '8',
        passwordrules: 'minlength: 8; maxlength: 64;',
        'aria-describedby': `${attribs['name']}-hint rule`,
      })
      // It would cut silently what is pasted.
      expect(attribs).not.to.have.any.keys('value', 'maxlength')
    }
    const rule = find('p').filter(({ attribs }) => attribs['id'] === 'rule')
    expect(text(rule)).to.contain('8').and.to.contain('64')
  })

  for (const mode of REFUSALS) {
    it(`show the same form again after ${mode}, with what is wrong`, () => {
      const { find } = read(reset(mode))
      const wrong = mode === 'password_mismatch' ? 'confirm_password' : 'password'
      expect(text(find('title'))).to.equal('Error: Set a new password')
      expect(faultsOn(reset(mode))).to.have.all.keys([wrong])
      for (const { attribs } of find('input').filter((input) => input.attribs['id'])) {
        expect(attribs['aria-invalid']).to.equal(attribs['id'] === wrong ? 'true' : undefined)
        // Both are to be typed anew; the first has the focus, and tells the fault.
        const isFirst = attribs['id'] === 'password'
        expect('autofocus' in attribs).to.equal(isFirst)
        if (isFirst) expect(attribs['aria-describedby']?.split(' ')).to.include(`${wrong}-hint`)
      }
      expect(hiddenFields(reset(mode))).to.deep.equal({ token: 't' })
    })
  }

  it('name the limits in the refusals', () => {
    expect(faultsOn(reset('password_too_short'))['password']).to.contain('8 characters')
    expect(faultsOn(reset('password_too_long'))['password'])
      .to.contain('64 characters')
      .and.to.contain('over the limit: 4.')
  })

  it('show two faults, each beside its field', () => {
    const both = { ...LIMITS, mode: 'password_mismatch', also: 'password_too_short' } as const
    expect(faultsOn(page('reset-password', both))).to.deep.equal({
      ...faultsOn(reset('password_too_short')),
      ...faultsOn(reset('password_mismatch')),
    })
  })

  it('lead on to the client after a reset, and otherwise back to the app (XSS-06)', () => {
    const done = (href?: string) => {
      const client = href === undefined ? {} : { client: { clientName: 'Shop', href } }
      return read(page('reset-password', { mode: 'done', ...client }))
    }
    const genuine = ['https://shop.example/cb?a=1', 'http://127.0.0.1/', 'com.example.app:/cb']
    for (const href of genuine) {
      const [link] = done(href).find('a')
      expect(link?.attribs).to.include({ href, rel: 'noreferrer' })
      expect(link && text([link])).to.equal('Continue to Shop')
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
      expect(DomUtils.textContent(done(href).document)).to.contain('Go back to the app')
    }
  })

  it('change nothing where another account is signed in, and name neither account', () => {
    const html = page('verify-email', { mode: 'other_account' })
    expect(read(html).find('form')).to.have.length(0)
    expect(DomUtils.textContent(read(html).document)).to.contain('Sign out first')
  })

  it('tell how long a verification link works', () => {
    const told = (lifetimeMs: number) =>
      page('verify-email', {
        mode: 'blocked',
        username: 'u',
        sentTo: 'user@example.com',
        lifetimeMs,
        carried: {},
      })
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
      expect(told(lifetimeMs)).to.contain(`A link works for ${expected}.`)
    }
  })
})

describe('the style sheet', () => {
  it('is small and loads nothing', () => {
    expect(Buffer.byteLength(views.stylesheet.text)).to.be.below(8192)
    expect(views.stylesheet.text).not.to.match(/url\(|@import|expression/)
  })
})

describe('mails', () => {
  const at = new Date('2026-01-02T03:04:05Z')
  const common = { username: 'ada', link: LINK, notMe: NOT_ME, at }

  for (const name of MAILS) {
    const locals = LINK_MAILS.includes(name) ? { ...common, lifetimeMs: 3_600_000 } : common

    it(`${name} has the link once per part and never in the subject`, () => {
      const mail = views.mail(name, locals)
      expect(mail.text.split('\n').filter((line) => line === LINK)).to.have.length(1)
      expect(mail.text.split('token=')).to.have.length(2)
      expect(mail.text.trimEnd().split('\n').at(-1)).to.equal(NOT_ME)
      expect(mail.html.split('token=')).to.have.length(2)
      const { find, document } = read(mail.html)
      expect(find('a').map(({ attribs }) => attribs['href'])).to.deep.equal([LINK, NOT_ME])
      expect(DomUtils.textContent(document)).not.to.contain('http')
      expect(mail.subject).to.match(/^[\w -]+$/)
      expect(mail.text).not.to.match(/undefined|[{}]/)
    })

    it(`${name} says for whom, when, how long and where to, and what to do if it was not you`, () => {
      const mail = views.mail(name, { ...locals, clientName: 'Shop & Co', userAgent: EDGE })
      const html = DomUtils.textContent(read(mail.html).document)
      for (const part of [mail.text.replaceAll('\n', ' '), html]) {
        expect(part).to.contain('Hello ada,')
        expect(part).to.contain('Shop & Co')
        expect(part).to.match(/ on January 2, 2026 at 3:04.AM UTC, with Edge on Windows\./)
        if (LINK_MAILS.includes(name)) expect(part).to.contain('The link works once, for 1 hour.')
        expect(part).to.contain(words[`mail.${name}.not_you`])
      }
      expect(html).to.contain('The button opens a page on id.\u2060example.\u2060com.')
    })

    it(`${name} tells of no browser where it is not sure of one, and never what a browser calls itself`, () => {
      for (const userAgent of [undefined, '', 'curl/8.5.0', `${EDGE} Evil/1.0`, 'evil.example']) {
        const mail = views.mail(name, { ...locals, userAgent })
        expect(mail.text).to.match(/ on January 2, 2026 at 3:04.AM UTC\.$/m)
        expect(`${mail.text}${mail.html}`).not.to.match(/Edge|curl|evil|with \./i)
      }
    })

    it(`${name} says beforehand what it is about, in words and without its link`, () => {
      const { find, all } = read(views.mail(name, locals).html)
      const [preheader] = find('div')
      expect(preheader?.attribs['style']).to.match(/^display:none/)
      expect(text(find('div')).length).to.be.within(30, 110)
      expect(text(find('div'))).not.to.match(/http|token|example/)
      expect(all.find((element) => element.parent === find('body')[0])).to.equal(preheader)
    })

    it(`${name} can be read in a narrow text window`, () => {
      const long = { ...locals, username: 'w'.repeat(99), clientName: 'Shop', userAgent: EDGE }
      const inTwoColumns = /[\u3000-\u30FF\u4E00-\u9FFF\uFF00-\uFF60]/g
      for (const user of views.locales) {
        const { text } = views.mail(name, long, { user })
        for (const line of text.split('\n').filter((line) => line !== LINK && line !== NOT_ME))
          expect(line.replaceAll(inTwoColumns, '  ').length, line).to.be.at.most(76)
        expect(text).not.to.match(/ $|^[、。，！？：）」]/m)
      }
    })

    it(`${name} loads nothing and runs nothing`, () => {
      const { find, html } = read(views.mail(name, locals).html)
      for (const forbidden of ['img', 'script', 'link', 'form', 'iframe', 'svg'])
        expect(find(forbidden), forbidden).to.deep.equal([])
      expect(html).not.to.match(/url\(|src=|@import|@font-face|expression|background=/)
    })

    it(`${name} is made for small windows, the dark, and readers that drop what html and body say`, () => {
      const { find, html } = read(views.mail(name, locals).html)
      const [outer, card] = find('table')
      expect(outer?.attribs).to.include({ lang: 'en', dir: 'ltr', width: '100%' })
      expect(Number(card?.attribs['width'])).to.be.at.most(600)
      expect(card?.attribs['style']).to.match(/^width:100%;max-width:\d{3}px;/)
      expect(find('table').every(({ attribs }) => attribs['role'] === 'presentation')).to.equal(
        true,
      )
      const meta = find('meta').map(({ attribs }) => [attribs['name'], attribs['content']])
      expect(meta).to.deep.include(['color-scheme', 'light dark'])
      expect(html).to.contain('@media (prefers-color-scheme: dark)')
      const words = find('td').filter(({ attribs }) => attribs['class'] === 'text')
      expect(words.map(({ attribs }) => attribs['align'])).to.deep.equal(['left'])
    })

    for (const payload of PAYLOADS) {
      it(`${name} keeps ${JSON.stringify(payload)} a text`, () => {
        const plain = views.mail(name, { ...locals, clientName: 'Shop', apps: appsOf('Shop') })
        const payloads = { username: payload, clientName: payload, userAgent: payload }
        const hostile = views.mail(name, { ...locals, ...payloads, apps: appsOf(payload) })
        expect(skeleton(hostile.html)).to.deep.equal(skeleton(plain.html))
        expect(hostile.subject).to.equal(plain.subject)
        expect(hostile.text.split('\n\n')).to.have.length(plain.text.split('\n\n').length)
        expect(hostile.text.split(LINK)).to.have.length(2)
        expect(hostile.text).not.to.match(/49049/)
      })
    }

    it(`${name} shows a hostile username in one line, bounded, and never as a link`, () => {
      const shown = (username: string) =>
        /^Hello(?: (.*))?,$/m.exec(views.mail(name, { ...locals, username }).text)?.[1]
      expect(shown('a\r\nBcc: x\u2028y\0z\u001b[31m')).to.equal('a Bcc: x y z [31m')
      expect(shown('x\u202egnp.exe\u2066\u200fy')).not.to.match(/[\p{Bidi_Control}]/u)
      expect([...(shown('a'.repeat(500)) ?? '')]).to.have.length(64)
      expect([...(shown('😀'.repeat(64)) ?? '')]).to.have.length(64)
      expect(shown(' \r\n\t ')).to.equal(undefined)
      for (const link of [
        'https://evil.example/login',
        'http:\\\\evil.example',
        '//evil.example',
        'www.evil.example',
        'evil.example',
        'mailto:x@evil.example',
        'tel:+4912345',
        '\\\\evil\\share',
      ]) {
        expect(shown(link), link).not.to.match(/:\/\/|\/\/|\\\\|[.:](?=[^\s\u2060])/)
      }
    })
  }

  it('that an admin has sent say so, and name no browser', () => {
    for (const name of LINK_MAILS) {
      const admin = { isByAdmin: true, userAgent: EDGE, clientName: 'Shop', lifetimeMs: 3_600_000 }
      const mail = views.mail(name, { ...common, ...admin })
      expect(mail.text).to.contain('The people who run this sign-in service ')
      expect(`${mail.text}${mail.html}`).not.to.match(/Someone, hopefully you|Edge|Windows|Shop/)
      expect(mail.text.split(LINK)).to.have.length(2)
    }
  })
})

function reset(mode: 'form' | (typeof REFUSALS)[number]) {
  return page('reset-password', { mode, ...LIMITS, excess: 4 })
}

/** What is told as wrong, by the field that it is beside. */
function faultsOn(html: string): Record<string, string> {
  const hints = read(html).all.filter(({ attribs }) => attribs['class'] === 'hint fault')
  return Object.fromEntries(
    hints.map((hint) => [hint.attribs['id']?.replace('-hint', ''), text([hint])]),
  )
}

function appsOf(name: string) {
  return { told: { names: [name], more: 1 }, untold: { names: [name], more: 0 } }
}

/** Every page in every mode and for every reason, with `value` in every place that takes a text from outside. */
function renderAll(value: string) {
  const carried = { clientId: value, redirectUri: value, scope: value, state: value }
  const limits = { token: value, minLength: 8, maxLength: 64 }
  const shownClient = { clientName: value, logo: `/logos/${value}` }
  const client = { ...shownClient, href: `https://shop.example/?${value}` }
  const apps = appsOf(value)
  const link = { token: value, carried, authorizeSig: value }
  const waiting = value
  const elsewhere = { mode: 'elsewhere', username: value, client: shownClient } as const
  const blocked = { mode: 'blocked', username: value, lifetimeMs: 86_400_000, carried } as const
  const shown = <N extends PageName>(name: N, locals: PageLocals[N], state = '') => ({
    name,
    mode: locals.mode,
    reason: 'reason' in locals ? locals.reason : undefined,
    label: `${name} in mode ${locals.mode} ${'reason' in locals ? locals.reason : ''} ${state}`,
    html: page(name, locals),
  })
  return [
    shown('forgot-password', { mode: 'form', carried }),
    shown('forgot-password', { mode: 'form', carried, client: shownClient }),
    shown('forgot-password', { mode: 'invalid', carried, client: shownClient }),
    shown('forgot-password', { mode: 'sent', carried }),
    shown('forgot-password', { mode: 'sent', carried, waitMs: 30_000 }, 'with a time to wait'),
    ...(['form', ...REFUSALS] as const).map((mode) => shown('reset-password', { mode, ...limits })),
    ...REASONS.map((reason) => shown('reset-password', { mode: 'invalid', reason, carried })),
    shown(
      'reset-password',
      { mode: 'invalid', reason: 'expired', carried, renew: value },
      'to renew',
    ),
    shown('reset-password', { mode: 'done' }),
    shown('reset-password', { mode: 'done', client, apps }, 'with a client and apps'),
    shown('verify-email', blocked),
    shown('verify-email', { ...blocked, client: shownClient, waiting }, 'that waits'),
    ...FAULTS.map((fault) =>
      shown(
        'verify-email',
        { ...blocked, sentTo: value, waiting, waitMs: 30_000, fault },
        fault.reason,
      ),
    ),
    ...VERIFICATION_REASONS.map((reason) =>
      shown('verify-email', { mode: 'expired', reason, carried }),
    ),
    ...VERIFICATION_REASONS.map((reason) =>
      shown('verify-email', { mode: 'expired', reason, carried, client }, 'with a client'),
    ),
    shown('verify-email', { mode: 'expired', reason: 'expired', carried, renew: link }, 'to renew'),
    shown('verify-email', { mode: 'sent' }),
    shown('verify-email', { mode: 'sent', waiting, waitMs: 30_000 }, 'that waits'),
    shown('verify-email', { mode: 'verified' }),
    shown('verify-email', { mode: 'verified', client }, 'with a client'),
    shown('verify-email', { mode: 'other_account', client: shownClient }),
    shown('verify-email', { mode: 'confirm', link, client: shownClient }),
    shown('verify-email', elsewhere),
    shown(
      'verify-email',
      { ...elsewhere, code: '042917', at: new Date(0), waitMs: 30_000 },
      'with a code',
    ),
    shown('verify-email', { mode: 'signed_in' }),
    shown('verify-email', { mode: 'ended', client }),
    shown('verify-email', { mode: 'ended' }),
    ...ERRORS.map((mode) => shown('error', { mode })),
  ]
}

function read(html: string) {
  const document = parseDocument(html)
  const find = (name: string) => DomUtils.getElementsByTagName(name, document)
  const [main] = find('main')
  return { html, document, find, all: find('*'), main: main ?? { attribs: {} } }
}

/** All elements with the names of their attributes: what must not depend on any value. */
function skeleton(html: string): string[] {
  return read(html).all.map(({ name, attribs }) => `${name} ${Object.keys(attribs).join(' ')}`)
}

function hiddenFields(html: string): Record<string, string | undefined> {
  const hidden = read(html).find('input')
  return Object.fromEntries(
    hidden
      .filter(({ attribs }) => attribs['type'] === 'hidden')
      .map(({ attribs }) => [attribs['name'], attribs['value']]),
  )
}

function text(nodes: Parameters<typeof DomUtils.textContent>[0]): string {
  return DomUtils.textContent(nodes)
}
