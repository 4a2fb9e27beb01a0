import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import type { Log } from '../../src/ports/index.ts'
import { createViews } from '../../src/views/index.ts'
import { removeViewsDirectories, viewsDirectory } from '../support/views-directory.ts'

const OWN = createViews('/oauth2')
const ENGLISH: Record<string, string> = JSON.parse(
  readFileSync(new URL('../../views/locales/en.json', import.meta.url), 'utf8'),
)

describe('Locales of a host', () => {
  let logged: Parameters<Log>[]

  beforeEach(() => {
    logged = []
  })

  after(removeViewsDirectories)

  function viewsWith(locales: Record<string, object>, defaultLocale?: string) {
    const files = Object.entries(locales).map(
      ([name, words]) => [`locales/${name}.json`, JSON.stringify(words)] as const,
    )
    const directory = viewsDirectory(Object.fromEntries(files))
    const log: Log = (...line) => void logged.push(line)
    return createViews('/oauth2', { viewsDirectory: directory, defaultLocale, log })
  }

  const error = (views = OWN, asked?: string) =>
    views.page('error', { mode: 'error' }, { asked, accepted: 'x-nothing' })

  describe('a file adds a language', () => {
    const NYNORSK = { 'error.error.title': 'Noko gjekk gale' }

    it('for whoever reads it, and changes nothing for others', () => {
      const views = viewsWith({ nn: NYNORSK })
      expect(views.locales).to.have.members([...OWN.locales, 'nn'])
      const shown = /<html lang="nn" dir="ltr">.*<h1>Noko gjekk gale<\/h1>/
      expect(error(views, 'nn-NO').html).to.match(shown)
      expect(error(views, 'nn').lang).to.equal('nn')
      expect(error(views)).to.deep.equal(error())
      expect(error(views, 'en')).to.deep.equal(error(OWN, 'en'))
    })

    it('what it lacks is said in the default language, and a warning counts it', () => {
      const views = viewsWith({ nn: NYNORSK })
      expect(error(views, 'nn').html).to.contain(ENGLISH['error.error.lead'])
      expect(logged).to.have.length(1)
      const [level, , details] = logged[0] ?? []
      const all = Object.keys(ENGLISH).filter((key) => key !== 'dir').length
      expect(level).to.equal('warn')
      expect(details).to.deep.include({ locale: 'nn', default: 'en', lacking: all - 1, of: all })
    })

    it('what the default language lacks is said in English', () => {
      const fy = { 'error.error.title': 'Flater', 'error.error.lead': 'Besykje it letter' }
      const views = viewsWith({ nn: NYNORSK, fy }, 'fy')
      expect(error(views).lang).to.equal('fy')
      expect(error(views, 'nn').html)
        .to.contain('Noko gjekk gale')
        .and.to.contain('Besykje it letter')
      const refused = views.page('error', { mode: 'refused' }, { asked: 'nn' }).html
      expect(refused).to.contain(ENGLISH['error.refused.lead'])
    })

    it('a whole one is silent, whatever plural forms the language has', () => {
      const { 'characters.one': _one, ...korean } = ENGLISH
      viewsWith({ nn: ENGLISH, ko: korean })
      expect(logged).to.deep.equal([])
      const polish = { 'characters.few': '{count} znaki', 'characters.many': '{count} znaków' }
      const views = viewsWith({ pl: { ...ENGLISH, ...polish } })
      expect(logged).to.deep.equal([])
      const rest = { mode: 'password_too_short', token: 't', maxLength: 64 } as const
      const form = (minLength: number) =>
        views.page('reset-password', { ...rest, minLength }, { asked: 'pl' }).html
      expect(form(3)).to.contain('3 znaki')
      expect(form(8)).to.contain('8 znaków')
    })

    it('mails are written in it', () => {
      const views = viewsWith({ nn: { ...ENGLISH, 'mail.test.subject': 'Ei prøve' } })
      const locals = { username: '', link: '', at: new Date(0) }
      const mail = (user?: string) => views.mail('test', locals, { user })
      expect(mail('nn').subject).to.equal('Ei prøve')
      expect(mail('nn').html).to.contain('<html lang="nn" dir="ltr">')
      expect(mail('en')).to.deep.equal(OWN.mail('test', locals))
    })
  })

  it('words that nothing says are told, such as a misspelled key', () => {
    viewsWith({ en: { 'error.eror.title': 'Sorry', 'error.error.title': 'Sorry' } })
    expect(logged.map(([level, , details]) => [level, details])).to.deep.equal([
      ['warn', { locale: 'en', keys: ['error.eror.title'] }],
    ])
  })

  describe('dir is that of the language', () => {
    for (const [dir, other, locales] of [
      ['rtl', 'ltr', 'ar ar-EG he fa ur ps yi dv ckb uz-Arab az-Arab'],
      ['ltr', 'rtl', 'uz sv tr zh-Hant-TW ar-Latn'],
    ] as const) {
      for (const locale of locales.split(' ')) {
        it(`${locale} is ${dir}, unless its file says otherwise`, () => {
          const views = viewsWith({ [locale]: ENGLISH_WITHOUT_DIR })
          expect(error(views, locale).html).to.contain(`<html lang="${locale}" dir="${dir}">`)
          const told = viewsWith({ [locale]: { dir: other } })
          expect(error(told, locale).html).to.contain(`<html lang="${locale}" dir="${other}">`)
        })
      }
    }
  })

  describe('are compared in their canonical form', () => {
    for (const [file, locale] of [
      ['EN-gb', 'en-GB'],
      ['zh-hant-tw', 'zh-Hant-TW'],
      ['iw', 'he'],
      ['sr-latn', 'sr-Latn'],
    ] as const) {
      it(`${file}.json is ${locale}`, () => {
        const views = viewsWith({ [file]: { 'error.error.title': 'Found' } }, file)
        expect(views.locales).to.include(locale)
        expect(error(views).lang).to.equal(locale)
        expect(error(views, locale).html).to.contain('<h1>Found</h1>')
        expect(error(views, locale.toLowerCase()).lang).to.equal(locale)
      })
    }

    it('EN.json changes the words of our en', () => {
      const views = viewsWith({ EN: { 'error.error.title': 'Found' } })
      expect(views.locales).to.deep.equal(OWN.locales)
      expect(error(views).html).to.contain('<h1>Found</h1>')
    })
  })

  describe('defaultLocale', () => {
    it('is spoken where nothing better is known', () => {
      const views = viewsWith({ sv: { 'error.error.title': 'Något gick fel' } }, 'sv')
      expect(error(views).lang).to.equal('sv')
      expect(error(views).html).to.contain('Något gick fel')
      expect(error(views, 'en')).to.deep.equal(error(OWN, 'en'))
    })

    it('must be one that there are words in', () => {
      const told = /^defaultLocale must be one of .*\bsv\b/
      expect(() => viewsWith({ sv: {} }, 'fy')).to.throw(TypeError, told)
      expect(viewsWith({ sv: {} }, 'SV').locales).to.include('sv')
    })
  })
})

const { dir: _dir, ...ENGLISH_WITHOUT_DIR } = ENGLISH
