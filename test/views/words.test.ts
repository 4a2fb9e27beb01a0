import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { DomUtils, parseDocument } from 'htmlparser2'
import { mailTemplates } from '../../src/ports/mail-kinds.ts'
import type { PageLocals, PageName } from '../../src/views/index.ts'
import { createCatalog, type Catalog } from '../../src/views/catalog.ts'
import { readLocales } from '../../src/views/locale-files.ts'
import { renderMail, type MailLocals, type MailName } from '../../src/views/mails.ts'
import { renderPage } from '../../src/views/pages.ts'
import { PAGE_NAMES, SAMPLE_PAGES } from '../../src/views/sample-pages.ts'
import { createTemplates } from '../../src/views/templates.ts'
import { readViewFiles } from '../../src/views/view-files.ts'

const VIEWS = fileURLToPath(new URL('../../views/', import.meta.url))
const LINK = 'https://id.example.com/oauth2/reset-password?token=Zm9vYmFy'
const NOT_ME = 'https://id.example.com/oauth2/not-me'
const SAFARI =
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.1 Safari/605.1.15'
const BRAND = {
  name: 'Acme',
  homeUrl: 'https://acme.example/',
  signInUrl: 'https://acme.example/sign-in',
  supportUrl: 'mailto:help@acme.example',
}
const FRAME = {
  oauthPath: '/oauth2',
  stylesheet: '/oauth2/s.css',
  script: '/oauth2/s.js',
  favicon: '/oauth2/i.svg',
  captcha: '<i></i>',
  brand: BRAND,
}
const problems: string[] = []
const files = readViewFiles(VIEWS, undefined, problems)
/** Without fallbacks: a word that is missing is thrown. */
const catalogs = new Map(
  [...readLocales(files, problems)].map(([locale, words]) => [locale, createCatalog(words, [])]),
)
const templates = createTemplates(files, () => {}, problems)

function wordsOf(locale: string): Map<string, string> {
  const text = readFileSync(`${VIEWS}locales/${locale}.json`, 'utf8')
  const words = new Map(Object.entries(JSON.parse(text) as Record<string, string>))
  words.delete('dir')
  return words
}

/** Every mail in every form that its words depend on. */
function everyMail(): { name: MailName; locals: MailLocals }[] {
  const at = new Date('2026-01-02T15:04:05Z')
  const both = (one: Partial<MailLocals>): Partial<MailLocals>[] => [{}, one]
  const mails: { name: MailName; locals: MailLocals }[] = [
    { name: 'test', locals: { username: '', link: '', at } },
  ]
  for (const name of mailTemplates) {
    const lives = name === 'password-changed' ? {} : { lifetimeMs: 90 * 60_000 }
    const other = name === 'password-changed' ? { isByHost: true } : { isByAdmin: true }
    for (const user of ['', 'ada']) {
      for (const client of both({ clientName: 'Shop' })) {
        for (const device of both({ userAgent: SAFARI })) {
          for (const by of both(other)) {
            const login = { code: '042917', at }
            const common = { username: user, link: LINK, notMe: NOT_ME, at, login, ...lives }
            mails.push({ name, locals: { ...common, ...client, ...device, ...by } })
          }
        }
      }
    }
  }
  return mails
}

/** Every page in every mode, and the limits of a password in every number that a language has a form for. */
function everyPage(): [PageName, PageLocals[PageName]][] {
  const samples = PAGE_NAMES.flatMap((name) =>
    Object.values<PageLocals[PageName][]>(SAMPLE_PAGES[name])
      .flat()
      .map((locals): [PageName, PageLocals[PageName]] => [name, locals]),
  )
  const counts = [...Array(101).keys(), 1_000_000]
  const limits = counts.map((count): [PageName, PageLocals['reset-password']] => [
    'reset-password',
    { mode: 'password_too_short', token: 't', minLength: count, maxLength: 64 },
  ])
  return [...samples, ...limits]
}

/** In the language and direction of the catalog, with everything filled in. */
function expectWhole(html: string, { locale, dir }: { locale: string; dir: string }, what: string) {
  const document = parseDocument(html.replace(/<style>.*<\/style>/s, ''))
  const [root] = DomUtils.getElementsByTagName('html', document)
  expect(root?.attribs, what).to.deep.equal({ lang: locale, dir })
  expectFilledIn(DomUtils.textContent(document), what)
}

function expectFilledIn(text: string, what: string) {
  expect(text, what).not.to.match(/undefined|\bnull\b|NaN|\[object|\bmail\.[a-z]|Invalid|[{}\0]/)
}

describe('the words of pages and mails', () => {
  for (const [locale, catalog] of catalogs) {
    it(`are all there in ${locale}, and each is used`, () => {
      const used = new Set<string>()
      const recording: Catalog = {
        ...catalog,
        t(key, values) {
          used.add(key)
          return catalog.t(key, values)
        },
      }
      const language = { locale, dir: catalog.dir }
      for (const [name, locals] of everyPage()) {
        const html = renderPage(templates, recording, FRAME, name, locals)
        expectWhole(html, language, `${name} ${locals.mode}`)
      }
      for (const { name, locals } of everyMail()) {
        const { subject, text, html } = renderMail(templates, recording, name, locals, BRAND)
        expectWhole(html, language, name)
        for (const part of [subject, text]) expectFilledIn(part, name)
        if (name === 'test') continue
        expect(text.split('\n').filter((line) => line === LINK)).to.have.length(1)
        expect(html.split('token=')).to.have.length(2)
        expect(text.split('\n').filter((line) => line === NOT_ME)).to.have.length(1)
      }
      expect([...wordsOf(locale).keys()].filter((key) => !used.has(key))).to.deep.equal([])
    })

    it(`have in ${locale} what they have in en to fill in, and are nothing but text`, () => {
      const english = wordsOf('en')
      const blanks = (word = '') => [...new Set(word.match(/\{\w+\}/g))].toSorted()
      for (const [key, word] of wordsOf(locale)) {
        expect(word, key).not.to.match(/[<>&]|https?:|www\.|\s\s|^\s|\s$/)
        expect(word, key).to.equal(word.normalize('NFC'))
        if (/^mail\..*\.subject$/.test(key)) expect(word.length, key).to.be.within(4, 60)
        // Of one and two there are languages that need no number.
        if (/^characters\.(zero|one|two)$/.test(key)) continue
        const same =
          english.get(key) ?? (key.startsWith('mail.') ? '' : english.get('characters.other'))
        expect(blanks(word), key).to.deep.equal(blanks(same))
      }
    })

    it(`tell times and lifetimes as people who read ${locale} do`, () => {
      const locals = { username: 'ada', link: LINK, at: new Date('2026-01-02T15:04:05Z') }
      const lives = { ...locals, lifetimeMs: 90 * 60_000, userAgent: SAFARI }
      const solid = (text: string) => text.replaceAll(/\s/g, '')
      const text = solid(renderMail(templates, catalog, 'password-reset', lives).text)
      const minutes = { style: 'unit', unit: 'minute', unitDisplay: 'long' } as const
      expect(text).to.include(solid(new Intl.NumberFormat(locale, minutes).format(90)))
      const month = new Intl.DateTimeFormat(locale, {
        month: 'long',
        day: 'numeric',
        timeZone: 'UTC',
      })
      for (const { type, value } of month.formatToParts(locals.at))
        if (type !== 'literal') expect(text).to.include(value)
      expect(text).to.include('UTC')
      for (const name of ['Safari', 'macOS', 'iPadOS']) expect(text).to.include(name)
    })
  }

  it('are not moved by a name that is read in the other direction', () => {
    const greeting = (locale: string, username: string) => {
      const catalog = catalogs.get(locale)
      if (!catalog) throw new TypeError(`${locale}.json is missing`)
      const locals = { username, link: LINK, at: new Date() }
      return renderMail(templates, catalog, 'password-changed', locals).text.split('\n')[0]
    }
    expect(greeting('en', 'שרה!')).to.equal('Hello \u2068שרה!\u2069,')
    expect(greeting('en', 'ada!')).to.equal('Hello ada!,')
    expect(greeting('ar', 'ada!')).to.include('\u2068ada!\u2069')
    expect(greeting('en', '\u2067שרה\u2069\u202e!')).to.equal('Hello \u2068שרה !\u2069,')
  })

  it('are aligned to the side that reading begins at', () => {
    const english = catalogs.get('en')
    if (!english) throw new TypeError('en.json is missing')
    const locals = { username: 'ada', link: LINK, at: new Date() }
    for (const [dir, side] of [
      ['ltr', 'left'],
      ['rtl', 'right'],
    ] as const) {
      const { html } = renderMail(templates, { ...english, dir }, 'password-changed', locals)
      const document = parseDocument(html)
      const cell = DomUtils.getElementsByTagName('td', document).find(
        ({ attribs }) => attribs['class'] === 'text',
      )
      expect(cell?.attribs['align']).to.equal(side)
      expect(cell?.attribs['style']).to.match(new RegExp(`text-align:${side}$`))
      const tables = DomUtils.getElementsByTagName('table', document)
      expect(tables[0]?.attribs['dir']).to.equal(dir)
    }
  })
})
