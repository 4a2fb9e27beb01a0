import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { DomUtils, parseDocument } from 'htmlparser2'
import type { PageLocals, PageName } from '../../src/views.ts'
import { createCatalog, type Catalog } from '../../src/views/catalog.ts'
import { readLocales } from '../../src/views/locale-files.ts'
import { renderPage } from '../../src/views/pages.ts'
import { SAMPLE_PAGES } from '../../src/views/sample-locals.ts'
import { createTemplates } from '../../src/views/templates.ts'
import { readViewFiles } from '../../src/views/view-files.ts'

const VIEWS = fileURLToPath(new URL('../../views/', import.meta.url))
const NAMES: PageName[] = ['forgot-password', 'reset-password', 'verify-email', 'error']

const problems: string[] = []
const files = readViewFiles(VIEWS, undefined, problems)
/** Without fallbacks: a word that is missing is thrown. */
const catalogs = new Map(
  [...readLocales(files, problems)].map(([locale, words]) => [locale, createCatalog(words, [])]),
)
const templates = createTemplates(files, () => {}, problems)

function pageWords(locale: string): [key: string, word: string][] {
  const words: Record<string, string> = JSON.parse(
    readFileSync(`${VIEWS}locales/${locale}.json`, 'utf8'),
  )
  return Object.entries(words).filter(([key]) => key !== 'dir' && !key.startsWith('mail.'))
}

/** Every page in every mode, and the limits of a password in every number that a language has a form for. */
function everyPage(): [PageName, PageLocals[PageName]][] {
  const samples = NAMES.flatMap((name) =>
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

const ADDRESSES = { oauthPath: '/oauth2', stylesheet: '/oauth2/s.css', script: '/oauth2/s.js' }

describe('the words of the pages', () => {
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
      for (const [name, locals] of everyPage()) {
        const document = parseDocument(renderPage(templates, recording, ADDRESSES, name, locals))
        const [root] = DomUtils.getElementsByTagName('html', document)
        expect(root?.attribs).to.deep.equal({ lang: locale, dir: catalog.dir })
        expect(DomUtils.textContent(document), `${name} ${locals.mode}`).not.to.match(
          /undefined|null|NaN|\[object|[{}\0]/,
        )
      }
      const unused = pageWords(locale).filter(([key]) => !used.has(key))
      expect(unused.map(([key]) => key)).to.deep.equal([])
    })

    it(`have in ${locale} what they have in en to fill in, and are nothing but text`, () => {
      const english = new Map(pageWords('en'))
      const blanks = (word = '') => [...new Set(word.match(/\{\w+\}/g))].toSorted()
      for (const [key, word] of pageWords(locale)) {
        expect(word, key).not.to.match(/[<>&]|https?:|www\.|\s\s|^\s|\s$/)
        expect(word, key).to.equal(word.normalize('NFC'))
        // Of one and two there are languages that need no number.
        if (!/^characters\.(zero|one|two)$/.test(key)) {
          expect(blanks(word), key).to.deep.equal(
            blanks(english.get(key) ?? english.get('characters.other')),
          )
        }
      }
    })
  }
})
