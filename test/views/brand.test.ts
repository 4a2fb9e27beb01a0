import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { assert, integer, property } from 'fast-check'
import { DomUtils } from 'htmlparser2'
import { MAIL_KINDS, mailTemplates } from '../../src/contract/mail-kinds.ts'
import { SCHEMES, accentOf, checkBrand, contrast, type Brand } from '../../src/views/brand.ts'
import { createViews, type Views } from '../../src/views/index.ts'
import { webmailOf } from '../../src/views/pages.ts'
import { read, samplePages } from './read-pages.ts'

const STYLE = readFileSync(new URL('../../views/account-flows.css', import.meta.url), 'utf8')
const BASE = new URL('https://id.example/auth')
const LINK = 'https://id.example/oauth2/reset-password?token=Zm9vYmFy'
const HOME = 'https://acme.example/'
const SIGN_IN = 'https://acme.example/sign-in'
const BRAND: Brand = {
  name: 'Acme & Co',
  logo: '/logos/acme.png?v=2',
  colour: '#FFCC00',
  homeUrl: HOME,
  signInUrl: SIGN_IN,
  supportUrl: 'mailto:help@acme.example',
}
const BLOCKED = { mode: 'blocked', username: 'ann', lifetimeMs: 3_600_000, parameters: {} } as const
const MAILS = [...mailTemplates, 'test'] as const
const LEADS_SOMEWHERE = new Set<string>(
  Object.values(MAIL_KINDS).flatMap(({ page, template }) => (page ? template : [])),
)

const viewsOf = (brand: Brand) => createViews('/oauth2', { brand: checkBrand(brand, BASE) })

function everyPage(views: Views) {
  return samplePages.map(({ name, locals }) => ({
    label: `${name} ${locals.mode}`,
    hasClient: 'client' in locals && locals.client !== undefined,
    ...read(views.page(name, locals).html),
  }))
}

function everyMail(views: Views) {
  const locals = { username: 'ada', link: LINK, at: new Date(0), signsInElsewhere: 'Google' }
  return MAILS.map((name) => ({ name, ...views.mail(name, locals) }))
}

/** Where the links in elements of this kind lead to. */
const linksIn = ({ find }: ReturnType<typeof read>, tag: string) =>
  DomUtils.getElementsByTagName('a', find(tag)).map(({ attribs }) => attribs['href'])

describe('A brand', () => {
  const views = viewsOf(BRAND)

  it('is on every page: above it, or below where the client is above; with the way back and to help', () => {
    for (const page of everyPage(views)) {
      const { label, hasClient, find, textOf } = page
      const [header, ...others] = find('header')
      expect([header !== undefined, others], label).to.deep.equal([true, []])
      expect(textOf('header'), label).to.equal(hasClient ? 'The App' : 'Acme & Co')
      expect(linksIn(page, 'header'), label).to.deep.equal(hasClient ? [] : [HOME])
      const secured = hasClient ? 'Secured by Acme & Co' : ''
      expect(textOf('footer'), label).to.equal(`${secured}Back to sign-inHelp`)
      const links = [SIGN_IN, 'mailto:help@acme.example']
      expect(linksIn(page, 'footer'), label).to.deep.equal(hasClient ? [HOME, ...links] : links)
      expect(textOf('title'), label).to.match(/\S · Acme & Co$/)
    }
  })

  it('shows its logo from the page’s own origin, and without one a letter that no reader reads out', () => {
    const { find: inPage } = read(views.page('error', { mode: 'error' }).html)
    expect(inPage('img').map(({ attribs }) => attribs)).to.deep.equal([
      { src: '/logos/acme.png?v=2', width: '40', height: '40', alt: '' },
    ])
    expect(inPage('link').at(-1)?.attribs).to.include({ rel: 'icon', href: '/logos/acme.png?v=2' })
    const { find } = read(viewsOf({ name: 'école' }).page('error', { mode: 'error' }).html)
    const marks = find('span').filter(({ attribs }) => attribs['class'] === 'mark')
    const shown = marks.map((mark) => [mark.attribs['aria-hidden'], DomUtils.textContent(mark)])
    expect(shown).to.deep.equal([['true', 'É']])
    expect(find('img')).to.deep.equal([])
  })

  it('is in every mail: its logo with its name above, or its name alone where no mail program shows it, its colour at the button, its addresses below', () => {
    for (const { name, html, text, subject } of everyMail(views)) {
      const { find } = read(html)
      expect(find('img').map(({ attribs: { src, alt } }) => [src, alt])).to.deep.equal([
        ['https://id.example/logos/acme.png?v=2', 'Acme & Co'],
      ])
      const links = linksIn(read(html), 'html').filter((href) => href !== LINK)
      expect(links, name).to.deep.equal([HOME, HOME, 'mailto:help@acme.example'])
      const { accent } = accentOf('#ffcc00', SCHEMES.light)
      const isLink = LEADS_SOMEWHERE.has(name)
      expect(html.includes(`bgcolor="${accent}"`), name).to.equal(isLink)
      const below = `Acme & Co\n${HOME}\nHelp: help@acme.example`
      expect(text.trimEnd().split('\n\n').at(-1)).to.equal(below)
      expect(text.split('\n')[0]).to.equal(`Acme & Co · ${subject}`)
      expect(text.split('\n').includes(LINK), name).to.equal(isLink)
    }
    for (const { name, html } of everyMail(viewsOf({ name: 'Acme', logo: '/logo.svg' }))) {
      const { find, textOf } = read(html)
      expect(find('img')).to.deep.equal([])
      // This one also says to what the reader signs in.
      expect(textOf('body').match(/Acme/g), name).to.have.length(
        name === 'signs-in-elsewhere' ? 3 : 2,
      )
    }
  })

  it('is told by every part alone, and leaves no gap where there is nothing to say', () => {
    for (const [brand, header, footer] of [
      [{}, '', ''],
      [{ colour: '#123456' }, '', ''],
      [{ name: 'Acme' }, 'Acme', ''],
      [{ signInUrl: SIGN_IN }, '', 'Back to sign-in'],
      [{ supportUrl: HOME }, '', 'Help'],
    ] as const) {
      const { find, textOf } = read(viewsOf(brand).page('error', { mode: 'error' }).html)
      expect([textOf('bdi'), textOf('footer')]).to.deep.equal([header, footer])
      for (const part of [...find('header'), ...find('footer'), ...find('span')])
        expect(DomUtils.textContent(part)).to.not.equal('')
    }
  })

  it('that is none leaves pages and mails as they are', () => {
    const [plain, none] = [createViews('/oauth2'), viewsOf({})]
    const pagesOf = (views: Views) => everyPage(views).map(({ html }) => html)
    expect(pagesOf(none)).to.deep.equal(pagesOf(plain))
    expect(everyMail(none)).to.deep.equal(everyMail(plain))
    expect(none.stylesheet.text).to.equal(plain.stylesheet.text)
    for (const { find, textOf, hasClient } of everyPage(plain)) {
      expect([find('header').length, find('footer').length]).to.deep.equal([Number(hasClient), 0])
      expect(textOf('title')).not.to.contain('·')
    }
  })

  it('is a text, whatever is in it', () => {
    const name = '<img src=x onerror=alert(1)>'
    const hostile = viewsOf({ ...BRAND, name })
    for (const { textOf, find } of everyPage(hostile)) {
      expect(textOf('body')).to.contain(name)
      expect(find('img').filter(({ attribs }) => attribs['onerror'])).to.deep.equal([])
    }
    for (const { html } of everyMail(hostile)) expect(html).not.to.contain('<img src=x')
  })

  for (const [told, brand] of [
    ['brand', 'Acme'],
    ['brand.name', { name: '' }],
    ['brand.name', { name: 'two\nlines' }],
    ['brand.name', { name: 'x'.repeat(65) }],
    ['brand.name', { homeUrl: HOME }],
    ['brand.logo', { name: 'Acme', logo: 'https://cdn.example/logo.png' }],
    ['brand.logo', { name: 'Acme', logo: '//cdn.example/logo.png' }],
    ['brand.logo', { name: 'Acme', logo: 'logo.png' }],
    ['brand.logo', { name: 'Acme', logo: '/\\cdn.example/logo.png' }],
    ['brand.logo', { name: 'Acme', logo: 'data:image/png;base64,AAAA' }],
    ['brand.colour', { colour: 'red' }],
    ['brand.colour', { colour: '#fff' }],
    ['brand.colour', { colour: '#00000g' }],
    ['brand.homeUrl', { name: 'Acme', homeUrl: '/home' }],
    ['brand.signInUrl', { signInUrl: 'javascript:alert(1)' }],
    ['brand.signInUrl', { signInUrl: 'mailto:a@b.example' }],
    ['brand.supportUrl', { supportUrl: 'tel:112' }],
    ['brand.color', { color: '#4f46e5' }],
  ] as const) {
    it(`is refused, by its name, with ${JSON.stringify(brand)}`, () => {
      expect(() => checkBrand(brand as Brand, BASE)).to.throw(TypeError, told)
    })
  }
})

describe('The colour of a brand', () => {
  const colour = integer({ min: 0, max: 0xff_ff_ff }).map(
    (value) => `#${value.toString(16).padStart(6, '0')}`,
  )

  it('can be read on all that is behind it, light and dark, whatever it is (WCAG AA)', () => {
    const isReadable = (colour: string) =>
      Object.values(SCHEMES).every((scheme) => {
        const { accent, strong, on, soft } = accentOf(colour, scheme)
        expect([accent, strong, on, soft].join(' ')).to.match(/^#[\da-f]{6}( #[\da-f]{6}){3}$/)
        const behind = [scheme.card, scheme.page, soft, on]
        const least = Math.min(...behind.map((other) => contrast(accent, other)))
        return least >= 4.5 && contrast(strong, on) >= 4.5
      })
    const parts = ['00', '80', 'ff']
    const pairs = parts.flatMap((one) => parts.map((other) => one + other))
    const corners = parts.flatMap((red) => pairs.map((pair) => `#${red}${pair}`))
    expect(corners.filter((corner) => !isReadable(corner))).to.deep.equal([])
    assert(property(colour, isReadable), { numRuns: 500 })
  })

  it('is counted as WCAG counts, stays as it is where it can be read, and is measured against what the style sheet has', () => {
    expect(contrast('#000000', '#ffffff')).to.equal(21)
    expect(contrast('#777777', '#ffffff')).to.be.within(4.47, 4.48)
    for (const good of ['#4f46e5', '#0b6b5d', '#000000', '#b00020']) {
      expect(accentOf(good, SCHEMES.light).accent).to.equal(good)
    }
    const [light = '', dark = ''] = STYLE.split('@media (prefers-color-scheme: dark)')
    for (const [name, scheme] of Object.entries(SCHEMES)) {
      const text = name === 'light' ? light : dark
      expect(text).to.contain(`--card: ${scheme.card};`).and.contain(`--page: ${scheme.page};`)
      expect(text).to.contain(`--on-accent: ${scheme.on};`)
    }
  })

  it('comes after ours and before the host’s own, and colours the icon', () => {
    const { stylesheet, favicon } = viewsOf({ colour: '#b00020' })
    expect(stylesheet.text).to.match(/--accent: #1d4fb4;[^]*\n:root { --accent: #b00020; /)
    expect(favicon.text).to.contain('#b00020').and.not.contain('#1d4fb4')
  })
})

describe('The way to the mailbox', () => {
  const views = createViews('/oauth2')
  const opened = (typed: string | undefined) => {
    const pages = [
      views.page('forgot-password', { mode: 'sent', parameters: {}, typed }),
      views.page('verify-email', { mode: 'sent', typed }),
      views.page('verify-email', { ...BLOCKED, sentTo: typed?.trim() }),
    ]
    return pages.map(({ html }) => {
      const { find } = read(html)
      const links = find('a').filter(({ attribs }) => attribs['target'])
      return links.map((link) => [DomUtils.textContent(link), link.attribs])
    })
  }

  for (const [address, name, href] of [
    ['ann@gmail.com', 'Gmail', 'https://mail.google.com/'],
    ['Ann@GoogleMail.com ', 'Gmail', 'https://mail.google.com/'],
    ['ann@outlook.com', 'Outlook', 'https://outlook.live.com/mail/'],
    ['ann@hotmail.co.uk', 'Outlook', 'https://outlook.live.com/mail/'],
    ['ann@live.com', 'Outlook', 'https://outlook.live.com/mail/'],
    ['ann@yahoo.fr', 'Yahoo Mail', 'https://mail.yahoo.com/'],
    ['ann@yahoo.co.jp', 'Yahoo! メール', 'https://mail.yahoo.co.jp/'],
    ['ann@icloud.com', 'iCloud Mail', 'https://www.icloud.com/mail/'],
  ] as const) {
    it(`is shown to whoever typed ${address}`, () => {
      const attribs = { class: 'button', href, target: '_blank', rel: 'noopener noreferrer' }
      const link = [[`Open ${name}`, attribs]]
      expect(opened(address)).to.deep.equal([link, link, link])
    })
  }

  it('is not shown where what was typed does not tell it', () => {
    const others = ['ann@gmail.com.evil.example', 'ann@notgmail.com', 'ann@gmail.com@acme.example']
    for (const typed of [undefined, '', 'ann', 'gmail.com', 'ann@example.org', ...others]) {
      expect(webmailOf(typed), typed).to.equal(undefined)
      expect(opened(typed), typed).to.deep.equal([[], [], []])
    }
  })
})
