import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { expect } from 'chai'
import { BRAND } from '../browser/page-server.ts'
import { mustExist } from '../store/contract/samples.ts'
import { languageFor } from '../../src/http/pages.ts'
import { createCatalog, readLocales, type Catalog } from '../../src/views/locales.ts'
import {
  acceptedTags,
  askedTags,
  chooseLocale,
  keptTags,
  type Languages,
} from '../../src/views/languages.ts'
import { renderMail, SAMPLE_MAILS } from '../../src/views/mails.ts'
import { renderPage } from '../../src/views/pages.ts'
import { createTemplates } from '../../src/views/templates.ts'
import { readViewFiles } from '../../src/views/view-files.ts'
import { words, wordsIn } from '../support/words.ts'
import { read, samplePages } from './read-pages.ts'

const LINK = 'https://id.example.com/oauth2/reset-password?token=Zm9vYmFy'
const NOT_ME = 'https://id.example.com/oauth2/not-me'
const SAFARI =
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.1 Safari/605.1.15'
const FRAME = {
  oauthPath: '/oauth2',
  stylesheet: '/oauth2/s.css',
  script: '/oauth2/s.js',
  favicon: '/oauth2/i.svg',
  captcha: '<i></i>',
  brand: BRAND,
}
const problems: string[] = []
const files = readViewFiles(undefined, problems)
/** Without fallbacks: a word that is missing is thrown. */
const catalogs = new Map(
  [...readLocales(files, problems)].map(([locale, words]) => [locale, createCatalog(words, [])]),
)
const templates = createTemplates(files, () => {}, problems)

/** Every mail, with little and with much to say, whose link has a token if it has one. */
const mails = SAMPLE_MAILS.map(([name, locals]) => {
  const links = locals.notMe === undefined ? {} : { link: LINK, notMe: NOT_ME }
  return { name, locals: { ...locals, ...links } }
})

/** Every page in every mode, and the limits of a password in every number that a language has a form for. */
function everyPage() {
  const name = 'reset-password'
  const form = { mode: 'password_too_short', token: 't', maxLength: 64 } as const
  const counts = [...Array(101).keys(), 1_000_000]
  return [
    ...samplePages,
    ...counts.map((minLength) => ({ name, locals: { ...form, minLength } }) as const),
  ]
}

/** In the language and direction of the catalog, with everything filled in. */
function expectWhole(html: string, { locale, dir }: { locale: string; dir: string }, what: string) {
  const { find, whole } = read(html.replace(/<style>.*<\/style>/s, ''))
  expect(find('html')[0]?.attribs, what).to.deep.equal({ lang: locale, dir })
  expectFilledIn(whole, what)
}

function expectFilledIn(text: string, what: string) {
  expect(text, what).not.to.match(/undefined|\bnull\b|NaN|\[object|\bmail\.[a-z]|Invalid|[{}\0]/)
}

const LOCALES = ['en', 'de', 'fr', 'es', 'ar', 'pt-BR', 'zh', 'zh-Hant', 'sr-Latn', 'he']

type Row = [what: string, languages: Languages, expected: string]

const ROWS: Row[] = [
  ['nothing is known', {}, 'en'],
  ['all of it is empty', { asked: '', user: '', accepted: '' }, 'en'],
  ['the request asks', { asked: 'de', user: 'fr', accepted: 'es' }, 'de'],
  ['only the user has a language', { user: 'fr', accepted: 'es' }, 'fr'],
  ['only the browser has a language', { accepted: 'es' }, 'es'],
  ['the request asks for what there is not', { asked: 'nl', user: 'fr', accepted: 'es' }, 'fr'],
  ['the request asks for several', { asked: 'nl ar de' }, 'ar'],
  ['the user has what there is not', { user: 'nl', accepted: 'es' }, 'es'],
  ['a country is added', { asked: 'de-AT' }, 'de'],
  ['a country and more are added', { asked: 'de-Latn-AT-1996' }, 'de'],
  ['letters are in the other case', { asked: 'DE-at' }, 'de'],
  ['there is another country only', { asked: 'pt-PT', accepted: 'es' }, 'pt-BR'],
  ['there is some country only', { asked: 'pt', accepted: 'es' }, 'pt-BR'],
  ['the user is kept with an underscore', { user: 'pt_BR' }, 'pt-BR'],
  ['a script is asked for', { asked: 'zh-Hant-TW' }, 'zh-Hant'],
  ['the country tells the script', { asked: 'zh-TW' }, 'zh-Hant'],
  ['the country tells the other script', { asked: 'zh-SG' }, 'zh'],
  ['the other script is better than another language', { asked: 'sr-Cyrl', user: 'fr' }, 'fr'],
  ['an old name of the language is used', { asked: 'iw' }, 'he'],
  ['weights decide', { accepted: 'es;q=0.5, fr;q=0.9, de;q=0.7' }, 'fr'],
  ['of equal weights the first counts', { accepted: 'es;q=0.5, fr;q=0.5' }, 'es'],
  ['none has a weight', { accepted: 'ar, de' }, 'ar'],
  ['weights have spaces and capitals', { accepted: 'es ; Q=0.2 ,\tfr;q=0.3' }, 'fr'],
  ['a language is refused', { accepted: 'de;q=0, es;q=0.1' }, 'es'],
  ['a weight is no number', { accepted: 'de;q=high, es;q=0.1' }, 'es'],
  ['a weight is below zero', { accepted: 'de;q=-1, es;q=0.1' }, 'es'],
  ['a weight comes after much else', { accepted: `de${' '.repeat(200)};q=0, es;q=0.5` }, 'es'],
  ['any will do', { accepted: '*' }, 'en'],
  ['any will do, and one is named', { accepted: '*, de;q=0.5' }, 'de'],
  ['any is asked for', { asked: '*', user: 'de' }, 'de'],
  ['it is the name of something else', { asked: 'constructor', accepted: '__proto__, de' }, 'de'],
  ['it is a path', { asked: '../../etc/passwd', user: '/de', accepted: 'de/../fr, es' }, 'es'],
  ['it is markup', { asked: '<script>', user: '"de"', accepted: '{link}' }, 'en'],
  ['it is a lone surrogate', { asked: '\ud800', user: 'de\ud800', accepted: '\ud800' }, 'en'],
  ['it is ill-formed', { asked: 'de-', user: '-de', accepted: 'd, de--AT, de-toolongtag' }, 'en'],
  ['commas and spaces alone', { asked: '     ', accepted: ',,, ;;q=,' }, 'en'],
]

describe('the language of pages and mails', () => {
  for (const [what, languages, expected] of ROWS) {
    it(`is ${expected} where ${what}`, () => {
      expect(chooseLocale(LOCALES, languages, 'en')).to.equal(expected)
    })
  }

  it('is the other script rather than the fallback, but not where a browser adds the bare language by itself', () => {
    const chosen = (accepted: string) => chooseLocale(['en', 'zh-Hans', 'nl'], { accepted }, 'en')
    for (const traditional of ['zh-TW', 'zh-HK', 'zh-Hant', 'zh-hant-tw']) {
      expect(chosen(traditional)).to.equal('en')
      expect(chosen(`${traditional}, zh;q=0.9, nl;q=0.8`)).to.equal('nl')
      expect(chosen(`${traditional}, zh;q=0.9, zh-CN;q=0.8`)).to.equal('zh-Hans')
    }
    expect(chooseLocale(['en', 'zh'], { asked: 'zh-Hant-TW' }, 'en')).to.equal('zh')
    for (const simplified of ['zh', 'zh-CN', 'zh-SG', 'zh-MY', 'zh-Hans-HK', 'zh, zh-TW'])
      expect(chosen(simplified)).to.equal('zh-Hans')
  })

  it('is the one that was asked for, where a shorter one is there too', () => {
    const both = ['en', 'en-GB']
    for (const locales of [both, both.toReversed()]) {
      expect(chooseLocale(locales, { asked: 'en-GB' }, 'en')).to.equal('en-GB')
      expect(chooseLocale(locales, { asked: 'en-US' }, 'en-GB')).to.equal('en')
    }
  })

  it('is found among 20 tags, and not looked for beyond: long headers of garbage cost nothing', () => {
    const others = Array<string>(19).fill('nl')
    expect(chooseLocale(LOCALES, { asked: [...others, 'de'].join(' ') }, 'en')).to.equal('de')
    expect(chooseLocale(LOCALES, { accepted: [...others, 'de'].join(',') }, 'en')).to.equal('de')
    expect(chooseLocale(LOCALES, { asked: [...others, 'nl', 'de'].join(' ') }, 'en')).to.equal('en')
    for (const garbage of ['a-'.repeat(500_000), ','.repeat(1e6), 'de;q=0.'.repeat(100_000)]) {
      const languages = { asked: garbage, user: garbage, accepted: garbage }
      expect(chooseLocale(LOCALES, languages, 'en')).to.equal('en')
    }
  })

  it('is kept from a request as the tags alone, best first, in at most 100 characters, and never half a tag', () => {
    expect(acceptedTags('en;q=0.5, de-AT, <b>;q=1, fr;q=0, *;q=0.1')).to.deep.equal(['de-AT', 'en'])
    expect(askedTags('de <b> fr\r\nBcc: x en')).to.deep.equal(['de', 'en'])
    expect(keptTags(['de-AT', 'en'], ',')).to.equal('de-AT,en')
    expect(keptTags([], ' ')).to.equal(undefined)
    const many = Array.from({ length: 20 }, () => 'zh-Hant-TW')
    const kept = keptTags(many, ',') ?? ''
    expect(kept.length).to.be.within(90, 100)
    expect(kept.split(',')).to.deep.equal(many.slice(0, 9))
    expect(keptTags([`de${'-12345678'.repeat(12)}`], ',')).to.equal(undefined)
  })
})

describe('languageFor, for a page of the host', () => {
  const spoken = ['en', 'de', 'fr', 'ar'] as const
  const request = (url: string, accepted?: string) => {
    const headers = { 'accept-language': accepted }
    return Object.assign(new IncomingMessage(new Socket()), { url, headers })
  }

  for (const [what, url, uiLocales, accepted, expected] of [
    ['the address asks before all else', '/login?ui_locales=de', 'fr', 'ar', 'de'],
    ['the request asks before the browser', '/login?interaction=1', 'xx fr', 'ar', 'fr'],
    ['the browser is asked last', '/login', undefined, 'xx, ar;q=0.5', 'ar'],
    ['a near language is there', '/login', 'de-AT', undefined, 'de'],
    ['none is there', '/login', 'nl', 'it', 'en'],
    ['ui_locales is no text', '/login', ['fr'], 'de', 'de'],
    ['nothing is known', '/login', undefined, undefined, 'en'],
  ] as const) {
    it(`is ${expected} where ${what}`, () => {
      expect(languageFor(request(url, accepted), spoken, uiLocales)).to.equal(expected)
    })
  }
})

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
      for (const { name, locals } of everyPage()) {
        const { html } = renderPage(templates, recording, FRAME, name, locals)
        expectWhole(html, language, `${name} ${locals.mode}`)
      }
      for (const { name, locals } of mails) {
        const { subject, text, html } = renderMail(templates, recording, name, locals, BRAND)
        const plain = renderMail(templates, recording, name, locals)
        for (const each of [html, plain.html]) expectWhole(each, language, name)
        for (const part of [subject, text, plain.text]) expectFilledIn(part, name)
        if (locals.notMe === undefined) continue
        expect(text.split('\n').filter((line) => line === LINK)).to.have.length(1)
        expect(html.split('token=')).to.have.length(2)
        expect(text.split('\n').filter((line) => line === NOT_ME)).to.have.length(1)
      }
      const { dir: _dir, ...said } = wordsIn(locale)
      expect(Object.keys(said).filter((key) => !used.has(key))).to.deep.equal([])
    })

    it(`have in ${locale} what they have in en to fill in, and are nothing but text`, () => {
      const blanks = (word = '') => [...new Set(word.match(/\{\w+\}/g))].toSorted()
      for (const [key, word] of Object.entries(wordsIn(locale))) {
        expect(word, key).not.to.match(/[<>&]|https?:|www\.|\s\s|^\s|\s$/)
        expect(word, key).to.equal(word.normalize('NFC'))
        if (/^mail\..*\.subject$/.test(key)) expect(word.length, key).to.be.within(4, 60)
        // Of one and two there are languages that need no number.
        if (/^characters\.(zero|one|two)$/.test(key)) continue
        const plural = key.startsWith('mail.') ? '' : words['characters.other']
        expect(blanks(word), key).to.deep.equal(blanks(words[key] ?? plural))
      }
    })

    it(`tell times and lifetimes as people who read ${locale} do`, () => {
      const locals = { username: 'ada', link: LINK, at: new Date('2026-01-02T15:04:05Z') }
      const lives = { ...locals, lifetimeMs: 90 * 60_000, userAgent: SAFARI }
      const solid = (text: string) => text.replaceAll(/\s/g, '')
      const text = solid(renderMail(templates, catalog, 'password-reset', lives).text)
      const minutes = { style: 'unit', unit: 'minute', unitDisplay: 'long' } as const
      expect(text).to.include(solid(new Intl.NumberFormat(locale, minutes).format(90)))
      const day = { month: 'long', day: 'numeric', timeZone: 'UTC' } as const
      for (const { type, value } of new Intl.DateTimeFormat(locale, day).formatToParts(locals.at))
        if (type !== 'literal') expect(text).to.include(value)
      expect(text).to.include('UTC')
      for (const name of ['Safari', 'macOS', 'iPadOS']) expect(text).to.include(name)
    })
  }

  it('are not moved by a name that is read in the other direction', () => {
    const greeting = (locale: string, username: string) => {
      const locals = { username, link: LINK, at: new Date() }
      const catalog = mustExist(catalogs.get(locale))
      return renderMail(templates, catalog, 'password-changed', locals).text.split('\n')[2]
    }
    expect(greeting('en', 'שרה!')).to.equal('Hello \u2068שרה!\u2069,')
    expect(greeting('en', 'ada!')).to.equal('Hello ada!,')
    expect(greeting('ar', 'ada!')).to.include('\u2068ada!\u2069')
    expect(greeting('en', '\u2067שרה\u2069\u202e!')).to.equal('Hello \u2068שרה !\u2069,')
  })

  it('are aligned to the side that reading begins at', () => {
    const english = mustExist(catalogs.get('en'))
    const locals = { username: 'ada', link: LINK, at: new Date() }
    for (const [dir, side] of [
      ['ltr', 'left'],
      ['rtl', 'right'],
    ] as const) {
      const { html } = renderMail(templates, { ...english, dir }, 'password-changed', locals)
      const { find } = read(html)
      const cell = find('td').find(({ attribs }) => attribs['class'] === 'text')
      expect(cell?.attribs['align']).to.equal(side)
      expect(cell?.attribs['style']).to.match(new RegExp(`text-align:${side}$`))
      expect(find('table')[0]?.attribs['dir']).to.equal(dir)
    }
  })
})
