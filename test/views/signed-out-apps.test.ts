import { expect } from 'chai'
import { DomUtils, parseDocument } from 'htmlparser2'
import { createViews, type ShownApps, type SignedOutApps } from '../../src/views/index.ts'

const LINK = 'https://id.example/oauth2/forgot-password'
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

const views = createViews('/oauth2')
const none: ShownApps = { names: [], more: 0 }
const some = (...names: string[]): ShownApps => ({ names, more: 0 })

/** The page after a reset, and both parts of the mail that tells of it, as one reads them. */
function shown(apps: SignedOutApps | undefined, asked = 'en') {
  const { html } = views.page('reset-password', { mode: 'done', apps }, { asked })
  const locals = { username: 'ann', link: LINK, at: new Date(0), apps }
  const mail = views.mail('password-changed', locals, { asked })
  const textOf = (html: string) => DomUtils.textContent(parseDocument(html))
  return { html, mail, page: textOf(html), mailed: textOf(mail.html) }
}

/** Without the characters that keep names apart, and with one kind of blank. */
const plain = (text: string) => text.replaceAll(/[\u2060\u2068\u2069]/g, '').replaceAll(/\s+/g, ' ')

function expectSaid(apps: SignedOutApps | undefined, ...sentences: string[]) {
  const { page, mail, mailed } = shown(apps)
  for (const part of [page, mail.text, mailed].map(plain)) {
    for (const sentence of sentences) expect(part).to.contain(sentence)
    for (const start of ['We’re telling', 'We can’t tell', 'If you’re still'])
      expect(part.includes(start), start).to.equal(sentences.some((each) => each.startsWith(start)))
  }
}

describe('The apps that a person was signed in to, after a reset', () => {
  it('are named: those that are told, and those that cannot be', () => {
    const told = 'We’re telling your apps to sign you out: Shop and Mail.'
    const untold = 'We can’t tell some apps. Sign out there yourself: Wiki.'
    expectSaid({ told: some('Shop', 'Mail'), untold: some('Wiki') }, told, untold)
    expectSaid({ told: some('Shop', 'Mail'), untold: none }, told)
    expectSaid({ told: none, untold: some('Wiki') }, untold)
  })

  it('are none: page and mail say nothing of apps', () => {
    expectSaid({ told: none, untold: none })
    for (const part of Object.values(shown({ told: none, untold: none })))
      expect(JSON.stringify(part)).to.not.match(/\bapps\b/)
  })

  it('are not known: nobody is told that they are signed out of them', () => {
    expectSaid(undefined, 'If you’re still signed in to an app, sign out there.')
  })

  it('are many: ten are named, and the others are counted', () => {
    const names = [...'ABCDEFGHIJ']
    expectSaid(
      { told: { names, more: 3 }, untold: none },
      'We’re telling your apps to sign you out: A, B, C, D, E, F, G, H, I, J, and 3 more.',
    )
  })

  it('are named after a first password too, and there only where they are known', () => {
    const page = (apps?: SignedOutApps) =>
      views.page('accept-invitation', { mode: 'done', apps }).html
    expect(page({ told: some('Shop'), untold: none })).to.contain('sign you out: Shop.')
    expect(page()).to.not.contain('sign out')
  })

  for (const asked of views.locales) {
    it(`are a text and no link in ${asked}, whatever their names`, () => {
      const harmless = shown({ told: some('A', 'B'), untold: some('C') }, asked)
      const tags = (html: string) =>
        DomUtils.getElementsByTagName(() => true, parseDocument(html), true).map(({ name }) => name)
      for (const name of HOSTILE) {
        const { html, mail } = shown({ told: some(name, 'B'), untold: some(name) }, asked)
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
