import { readdirSync } from 'node:fs'
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { expect } from 'chai'
import { languageFor } from '../../src/http/language.ts'
import {
  acceptedTags,
  askedTags,
  chooseLocale,
  keptTags,
  type Languages,
} from '../../src/views/languages.ts'

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
  [
    'it is ill-formed',
    { asked: 'de-', user: '-de', accepted: 'd, de--AT, de-toolongasubtag' },
    'en',
  ],
  ['commas and spaces alone', { asked: '     ', accepted: ',,, ;;q=,' }, 'en'],
]

describe('the language of pages and mails', () => {
  for (const [what, languages, expected] of ROWS) {
    it(`is ${expected} where ${what}`, () => {
      expect(chooseLocale(LOCALES, languages, 'en')).to.equal(expected)
    })
  }

  it('is the other script of the same language rather than the fallback', () => {
    expect(chooseLocale(['en', 'zh'], { asked: 'zh-Hant-TW' }, 'en')).to.equal('zh')
  })

  it('is not the other script where a browser adds the bare language by itself', () => {
    const chosen = (accepted: string) => chooseLocale(['en', 'zh-Hans', 'nl'], { accepted }, 'en')
    for (const traditional of ['zh-TW', 'zh-HK', 'zh-Hant', 'zh-hant-tw']) {
      expect(chosen(traditional)).to.equal('en')
      expect(chosen(`${traditional}, zh;q=0.9, nl;q=0.8`)).to.equal('nl')
      expect(chosen(`${traditional}, zh;q=0.9, zh-CN;q=0.8`)).to.equal('zh-Hans')
    }
    for (const simplified of ['zh', 'zh-CN', 'zh-SG', 'zh-MY', 'zh-Hans-HK', 'zh, zh-TW'])
      expect(chosen(simplified)).to.equal('zh-Hans')
  })

  it('is the one that was asked for, where a shorter one is there too', () => {
    for (const locales of [
      ['en', 'en-GB'],
      ['en-GB', 'en'],
    ]) {
      expect(chooseLocale(locales, { asked: 'en-GB' }, 'en')).to.equal('en-GB')
      expect(chooseLocale(locales, { asked: 'en-US' }, 'en-GB')).to.equal('en')
    }
  })

  it('is found among 20 tags, and not looked for beyond', () => {
    const others = Array.from({ length: 19 }, () => 'nl')
    expect(chooseLocale(LOCALES, { asked: [...others, 'de'].join(' ') }, 'en')).to.equal('de')
    expect(chooseLocale(LOCALES, { accepted: [...others, 'de'].join(',') }, 'en')).to.equal('de')
    expect(chooseLocale(LOCALES, { asked: [...others, 'nl', 'de'].join(' ') }, 'en')).to.equal('en')
  })

  it('is the fallback for long headers of garbage, which cost nothing', () => {
    for (const garbage of ['a-'.repeat(500_000), ','.repeat(1e6), 'de;q=0.'.repeat(100_000)]) {
      const languages = { asked: garbage, user: garbage, accepted: garbage }
      expect(chooseLocale(LOCALES, languages, 'en')).to.equal('en')
    }
  })

  it('is one that there are words in, for each file of words', () => {
    const folder = new URL('../../views/locales/', import.meta.url)
    const locales = readdirSync(folder).map((file) => file.replace(/\.json$/, ''))
    for (const locale of locales) {
      expect(Intl.getCanonicalLocales(locale)).to.deep.equal([locale])
      expect(chooseLocale(locales, { asked: locale }, 'en')).to.equal(locale)
    }
  })
})

describe('what is kept of the languages of a request', () => {
  it('is the tags alone, best first', () => {
    expect(acceptedTags('en;q=0.5, de-AT, <b>;q=1, fr;q=0, *;q=0.1')).to.deep.equal(['de-AT', 'en'])
    expect(askedTags('de <b> fr\r\nBcc: x en')).to.deep.equal(['de', 'en'])
    expect(keptTags(['de-AT', 'en'], ',')).to.equal('de-AT,en')
    expect(keptTags([], ' ')).to.equal(undefined)
  })

  it('is at most 100 characters, and never half a tag', () => {
    const many = Array.from({ length: 20 }, () => 'zh-Hant-TW')
    const kept = keptTags(many, ',') ?? ''
    expect(kept.length).to.be.within(90, 100)
    expect(kept.split(',')).to.deep.equal(many.slice(0, 9))
    expect(keptTags([`de${'-12345678'.repeat(12)}`], ',')).to.equal(undefined)
  })
})

describe('languageFor, for a page of the host', () => {
  const spoken = ['en', 'de', 'fr', 'ar'] as const
  const request = (url: string, accepted?: string) =>
    Object.assign(new IncomingMessage(new Socket()), {
      url,
      headers: { 'accept-language': accepted },
    })

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
