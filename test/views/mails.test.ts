import { expect } from 'chai'
import { MAIL_KINDS } from '../../src/contract/mail-kinds.ts'
import { deviceOf } from '../../src/views/device.ts'
import {
  createViews,
  type MailName,
  type ShownApps,
  type SignedOutApps,
} from '../../src/views/index.ts'
import { words } from '../support/words.ts'
import { read } from './read-pages.ts'

const LINK = 'https://id.example.com/oauth2/reset-password?token=Zm9vYmFy&x=1'
const NOT_ME = 'https://id.example.com/oauth2/not-me?t=Zm9v'
const EDGE =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/143.0.0.0 Safari/537.36 Edg/143.0.0.0'
const KINDS = Object.values(MAIL_KINDS)
const LINK_MAILS = new Set<MailName>(KINDS.flatMap(({ link, template }) => (link ? template : [])))
const LINKED: MailName[] = KINDS.flatMap(({ page, template }) => (page ? template : []))
const MAILS: MailName[] = KINDS.map(({ template }) => template)

const LINKS =
  'https://evil.example/login http:\\\\evil.example //evil.example www.evil.example evil.example ' +
  'mailto:x@evil.example tel:+4912345 \\\\evil\\share'

const views = createViews('/oauth2')

describe('mails', () => {
  const at = new Date('2026-01-02T03:04:05Z')
  const common = { username: 'ada', link: LINK, notMe: NOT_ME, at }

  it('email-changed says what and when, and where to turn; it has no link, and tells of no account, client and browser', () => {
    const told = { ...common, notMe: '', clientName: 'Shop & Co', userAgent: EDGE }
    const mail = views.mail('email-changed', told)
    expect(mail.text.split('\n')[0]).to.equal('Your email address was changed')
    for (const part of [mail.text.replaceAll('\n', ' '), read(mail.html).whole]) {
      expect(part).to.contain('Hello,').and.contain(words['mail.email-changed.lead'])
      expect(part).to.match(/Changed on January 2, 2026 at 3:04.AM UTC\./)
      expect(part).to.contain(words['mail.email-changed.not_you'])
      expect(part).not.to.match(/https?:|Shop|ada|Edge/)
    }
    expect(read(mail.html).find('a')).to.deep.equal([])
  })

  it('email-verification says that a login waits, or else that the address was entered for an account', () => {
    const said = (more: object) =>
      views.mail('email-verification', { ...common, ...more }).text.replaceAll('\n', ' ')
    expect(said({})).to.contain('is signing in')
    const entered = { isEntered: true }
    expect(said(entered)).to.contain(words['mail.email-verification.lead_entered'])
    expect(said(entered)).not.to.contain('signing in')
    expect(said({})).to.contain('and the sign-in ends:')
    expect(said(entered)).not.to.contain('sign-in ends')
    expect(said({ ...entered, clientName: 'Shop' })).to.contain('an account to use with Shop.')
    expect(said({ ...entered, isByAdmin: true })).to.contain('The people who run')
  })

  function localsOf(name: MailName) {
    if (!LINKED.includes(name)) return { username: 'ada', link: '', at }
    return LINK_MAILS.has(name) ? { ...common, lifetimeMs: 3_600_000 } : common
  }

  for (const name of LINKED) {
    const locals = localsOf(name)

    it(`${name} says for whom, when, how long and where to, and what to do if it was not you; it tells of no browser where it is not sure of one`, () => {
      const login = name === 'email-verification' ? { code: '042917', at } : undefined
      const asked = { clientName: 'Shop & Co', userAgent: EDGE, login }
      const mail = views.mail(name, { ...locals, ...asked })
      const html = read(mail.html).whole
      expect(mail.text.split('\n')[0]).to.equal(mail.subject)
      for (const part of [mail.text.replaceAll('\n', ' '), html]) {
        expect(part).to.contain('Hello ada,')
        expect(part).to.contain('Shop & Co')
        expect(part).to.match(/ on January 2, 2026 at 3:04.AM UTC, with Edge on Windows\./)
        if (LINK_MAILS.has(name)) expect(part).to.contain('The link works once, for 1 hour.')
        expect(part).to.contain(words[`mail.${name}.not_you`])
        if (login) expect(part).to.contain(words['login.never'])
      }
      expect(html).to.contain('The button opens a page on id.\u2060example.\u2060com.')
      for (const userAgent of [undefined, '', 'curl/8.5.0', `${EDGE} Evil/1.0`, 'evil.example']) {
        const unsure = views.mail(name, { ...locals, userAgent })
        expect(unsure.text).to.match(/ on January 2, 2026 at 3:04.AM UTC\.$/m)
        expect(`${unsure.text}${unsure.html}`).not.to.match(/Edge|curl|evil|with \./i)
      }
    })
  }

  for (const name of MAILS) {
    const locals = localsOf(name)

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

    it(`${name} says beforehand what it is about, loads and runs nothing, and suits small windows, the dark, and readers that drop html and body`, () => {
      const { find, html, all, textOf } = read(views.mail(name, locals).html)
      const [preheader] = find('div')
      expect(preheader?.attribs['style']).to.match(/^display:none/)
      expect(textOf('div').length).to.be.within(30, 110)
      expect(textOf('div')).not.to.match(/http|token|example/)
      expect(all.find((element) => element.parent === find('body')[0])).to.equal(preheader)
      for (const forbidden of ['img', 'script', 'link', 'form', 'iframe', 'svg'])
        expect(find(forbidden), forbidden).to.deep.equal([])
      expect(html).not.to.match(/url\(|src=|@import|@font-face|expression|background=/)
      const [outer, card] = find('table')
      expect(outer?.attribs).to.include({ lang: 'en', dir: 'ltr', width: '100%' })
      expect(Number(card?.attribs['width'])).to.be.at.most(600)
      expect(card?.attribs['style']).to.match(/^width:100%;max-width:\d{3}px;/)
      for (const { attribs } of find('table')) expect(attribs['role']).to.equal('presentation')
      const meta = find('meta').map(({ attribs }) => [attribs['name'], attribs['content']])
      expect(meta).to.deep.include(['color-scheme', 'light dark'])
      expect(html).to.contain('@media (prefers-color-scheme: dark)')
      const texts = find('td').filter(({ attribs }) => attribs['class'] === 'text')
      expect(texts.map(({ attribs }) => attribs['align'])).to.deep.equal(['left'])
    })

    // The others name nobody.
    if (!LINKED.includes(name)) continue

    it(`${name} shows a hostile username in one line, bounded, and never as a link`, () => {
      const shown = (username: string) =>
        /^Hello(?: (.*))?,$/m.exec(views.mail(name, { ...locals, username }).text)?.[1]
      expect(shown('a\r\nBcc: x\u2028y\0z\u001b[31m')).to.equal('a Bcc: x y z [31m')
      expect(shown('x\u202egnp.exe\u2066\u200fy')).not.to.match(/[\p{Bidi_Control}]/u)
      expect([...(shown('a'.repeat(500)) ?? '')]).to.have.length(64)
      expect([...(shown('😀'.repeat(64)) ?? '')]).to.have.length(64)
      expect(shown(' \r\n\t ')).to.equal(undefined)
      for (const link of LINKS.split(' ')) {
        expect(shown(link), link).not.to.match(/:\/\/|\/\/|\\\\|[.:](?=[^\s\u2060])/)
      }
    })
  }
})

describe('The mail to a reader who signs in elsewhere', () => {
  const rendered = (signsInElsewhere: string, asked = 'en') =>
    views.mail(
      'signs-in-elsewhere',
      { username: 'ada', link: '', at: new Date(0), signsInElsewhere },
      { asked },
    )

  it('names that place in one line, bounded, and never as a link', () => {
    const shown = (place: string) =>
      /^You sign in with (.*); there is no password to reset\.$/.exec(
        rendered(place).text.split('\n\n')[2]?.replaceAll('\n', ' ') ?? '',
      )?.[1]
    expect(shown('Google')).to.equal('Google')
    expect(shown('a\r\nBcc: x\u2028y')).to.equal('a Bcc: x y')
    expect([...(shown('a'.repeat(500)) ?? '')]).to.have.length(64)
    for (const link of LINKS.split(' '))
      expect(shown(link), link).not.to.match(/:\/\/|\/\/|\\\\|[.:](?=[^\s\u2060])/)
    const plain = read(rendered('Google').html).all.map(({ name }) => name)
    const hostile = read(rendered('<a href="https://evil.example">x</a>').html)
    expect(hostile.all.map(({ name }) => name)).to.deep.equal(plain)
  })

  for (const asked of views.locales) {
    it(`has no link in ${asked}, fits a narrow text window, and names the place in both parts`, () => {
      const { subject, text, html } = rendered('Google', asked)
      expect(text.split('\n')[0]).to.equal(subject)
      const inTwoColumns = /[\u3000-\u30FF\u4E00-\u9FFF\uFF00-\uFF60]/g
      for (const line of text.split('\n'))
        expect(line.replaceAll(inTwoColumns, '  ').length, line).to.be.at.most(76)
      for (const part of [text, read(html).whole]) {
        expect(part).to.include('Google')
        expect(part).not.to.match(/https?:/)
      }
      expect(read(html).find('a')).to.deep.equal([])
      expect(read(html).textOf('div').length).to.be.at.least(15)
    })
  }
})

describe('The apps that a person was signed in to, after a reset', () => {
  const HOSTILE = [
    '<a href="https://evil.example">Sign in</a>',
    '</p><script>alert(1)</script>',
    'Your account is locked, see https://evil.example/x',
    'ann\r\nBcc: x@evil.example\u2028',
    '\u202Eevil\u2066',
    '{apps} {count} $& $1',
    'x'.repeat(500),
    'متجر',
  ]

  const some = (...names: string[]): ShownApps => ({ names, more: 0 })

  /** The page after a reset, and the mail that tells of it. */
  function shown(apps: SignedOutApps, asked: string) {
    const { html } = views.page('reset-password', { mode: 'done', apps }, { asked })
    const locals = { username: 'ann', link: LINK, at: new Date(0), apps }
    return { html, mail: views.mail('password-changed', locals, { asked }) }
  }

  for (const asked of views.locales) {
    it(`are a text and no link in ${asked}, whatever their names`, () => {
      const harmless = shown({ notified: some('A', 'B'), notNotified: some('C') }, asked)
      const tags = (html: string) => read(html).all.map(({ name }) => name)
      for (const name of HOSTILE) {
        const { html, mail } = shown({ notified: some(name, 'B'), notNotified: some(name) }, asked)
        expect(tags(html)).to.deep.equal(tags(harmless.html))
        expect(tags(mail.html)).to.deep.equal(tags(harmless.mail.html))
        expect(mail.subject).to.equal(harmless.mail.subject)
        const paragraphs = (text: string) => text.split('\n\n').length
        expect(paragraphs(mail.text)).to.equal(paragraphs(harmless.mail.text))
        expect(mail.text.match(/https?:\/\/\S+/g)).to.deep.equal([LINK])
        expect(mail.text).to.not.match(/evil\.example|(?![\u2068\u2069])\p{Bidi_Control}/u)
        expect(html).to.not.contain('x'.repeat(65))
      }
    })
  }
})

describe('browser and system, in words of ours', () => {
  const WINDOWS = 'Windows NT 10.0; Win64; x64'
  const MAC = 'Macintosh; Intel Mac OS X 10_15_7'
  const ANDROID = 'Linux; Android 10; K'
  const IPHONE = 'iPhone; CPU iPhone OS 18_6 like Mac OS X'
  const IPAD = 'iPad; CPU OS 18_6 like Mac OS X'
  const of = (system: string, rest: string) => `Mozilla/5.0 (${system}) ${rest}`
  const blink = (system: string, rest = 'Safari/537.36', name = 'Chrome/143.0.0.0') =>
    of(system, `AppleWebKit/537.36 (KHTML, like Gecko) ${name} ${rest}`)
  const webkit = (system: string, rest: string) =>
    of(system, `AppleWebKit/605.1.15 (KHTML, like Gecko) ${rest}`)
  const onPhone = 'Mobile Safari/537.36'
  const samsung = 'SamsungBrowser/29.0 Chrome/136.0.0.0'

  const KNOWN: [string, string][] = [
    ['Chrome on Windows', blink(WINDOWS)],
    ['Chrome on macOS or iPadOS', blink(MAC)],
    ['Chrome on Linux', blink('X11; Linux x86_64')],
    ['Chrome on ChromeOS', blink('X11; CrOS x86_64 14541.0.0')],
    ['Chrome on Android', blink(ANDROID, onPhone)],
    ['Chrome on iOS', webkit(IPHONE, 'CriOS/143.0.7499.92 Mobile/15E148 Safari/604.1')],
    ['Edge on Windows', blink(WINDOWS, 'Safari/537.36 Edg/143.0.0.0')],
    ['Edge on Android', blink(ANDROID, `${onPhone} EdgA/143.0.0.0`)],
    ['Edge on iOS', webkit(IPHONE, 'Version/18.0 EdgiOS/143.0.36 Mobile/15E148 Safari/604.1')],
    ['Firefox on Windows', of(`${WINDOWS}; rv:146.0`, 'Gecko/20100101 Firefox/146.0')],
    ['Firefox on Linux', of('X11; Ubuntu; Linux x86_64; rv:146.0', 'Gecko/20100101 Firefox/146.0')],
    ['Firefox on Android', of('Android 15; Mobile; rv:146.0', 'Gecko/146.0 Firefox/146.0')],
    ['Firefox on iOS', webkit(IPHONE, 'FxiOS/146.0 Mobile/15E148 Safari/605.1.15')],
    ['Opera on Windows', blink(WINDOWS, 'Safari/537.36 OPR/125.0.0.0')],
    ['Safari on macOS or iPadOS', webkit(MAC, 'Version/26.1 Safari/605.1.15')],
    ['Safari on iOS', webkit(IPHONE, 'Version/18.6 Mobile/15E148 Safari/604.1')],
    ['Safari on iPadOS', webkit(IPAD, 'Version/18.6 Mobile/15E148 Safari/604.1')],
    ['Samsung Internet on Android', blink(ANDROID, onPhone, samsung)],
  ]

  const CHROME = blink(WINDOWS)
  const UNSURE: Record<string, string> = {
    nothing: '',
    'a browser without a system': CHROME.replace(`(${WINDOWS}) `, ''),
    'a system without a browser': of(WINDOWS, ''),
    'a program': 'curl/8.5.0',
    'a robot': 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)',
    'a browser that nobody looks at': CHROME.replace('Chrome/', 'HeadlessChrome/'),
    'a browser inside another program': blink(WINDOWS, 'Electron/38.0.0 Safari/537.36'),
    'an app that shows a page': blink('Linux; Android 15; K; wv', onPhone),
    'an app on a phone': webkit(IPHONE, 'Mobile/15E148 [FBAN/FBIOS;FBAV/500]'),
    'a system that we do not know': blink('SMART-TV; Tizen 8.0'),
    'a browser that we do not know': `${CHROME} Evil/1.0`,
    'a browser with a message': `${CHROME} call +49 800 1234567`,
    'a system with a message': blink('Your account is locked. Windows NT 10.0'),
    'an address': 'https://evil.example/login',
    markup: `${CHROME}<a href="https://evil.example">x</a>`,
    'a line break and a header': `${CHROME}\r\nBcc: attacker@evil.example`,
    'a line break': `${CHROME}\n`,
    'an override of the direction': `\u202e${CHROME}`,
    NUL: `${CHROME}\0`,
    'two systems': CHROME.replace(') ', `) (${IPHONE}) `),
    'a version that is a message': CHROME.replace('143.0.0.0', '0800123456789'),
    'something cut off': CHROME.slice(0, 60),
    'very much of it': `${CHROME} `.repeat(50_000),
    'very many brackets': '('.repeat(100_000),
  }

  it('are told for each browser that is known, and not where there is any doubt', () => {
    for (const [expected, userAgent] of KNOWN) {
      const { browser, systems } = deviceOf(userAgent) ?? { browser: '', systems: [] }
      expect(`${browser} on ${systems.join(' or ')}`, userAgent).to.equal(expected)
    }
    for (const [what, userAgent] of Object.entries(UNSURE)) {
      expect(deviceOf(userAgent), what).to.equal(undefined)
    }
  })
})
