import { readdirSync, readFileSync } from 'node:fs'
import { expect } from 'chai'
import { createBrowser } from '../support/browser.ts'
import { suiteExampleServer } from '../support/example-server.ts'

const EXAMPLE = new URL('../../examples/server/', import.meta.url)
const SHARED = new URL('../../views/locales/', import.meta.url)

type Words = Record<string, string>

const wordsIn = (folder: URL, lang: string): Words =>
  JSON.parse(readFileSync(new URL(`${lang}.json`, folder), 'utf8'))
const languagesIn = (folder: URL) => readdirSync(folder).map((file) => file.replace('.json', ''))
const placeholders = (words: Words) =>
  Object.entries(words).map(([key, text]) => [key, ...(text.match(/\{\w+\}/g) ?? [])].join(' '))

const OWN = new URL('words/', EXAMPLE)
const LANGUAGES = languagesIn(OWN)
const ENGLISH = wordsIn(OWN, 'en')

describe('The words of the example', () => {
  it('are there in the languages of the package, and say the same in each', () => {
    expect(LANGUAGES).to.deep.equal(languagesIn(SHARED))
    for (const lang of LANGUAGES) {
      expect(placeholders(wordsIn(OWN, lang)), lang).to.deep.equal(placeholders(ENGLISH))
    }
  })

  it('are all that its pages say, and not what the package says already', () => {
    const shared = wordsIn(SHARED, 'en')
    const code = readdirSync(EXAMPLE)
      .filter((file) => file.endsWith('.ts'))
      .map((file) => readFileSync(new URL(file, EXAMPLE), 'utf8'))
      .join('\n')
    const said = [...code.matchAll(/\bt\('([^']+)'/g)].map(([, key = '']) => key)
    expect(said).to.include('login.password')
    expect(said.filter((key) => !(key in ENGLISH) && !(key in shared))).to.deep.equal([])
    expect(Object.keys(ENGLISH).filter((key) => key in shared)).to.deep.equal([])
  })
})

describe('The pages of the example server', () => {
  const server = suiteExampleServer()
  const langOf = (text: string) => /<html lang="([^"]*)" dir="([^"]*)"/.exec(text)?.slice(1)

  for (const lang of LANGUAGES) {
    it(`are in the language of the browser: ${lang}`, async () => {
      const words = wordsIn(OWN, lang)
      const dir = lang === 'ar' ? 'rtl' : 'ltr'
      for (const [path, title, status] of [
        ['/', words['home.title'], 200],
        ['/mailbox', words['mailbox.title'], 200],
        ['/demo/start', words['login.title'], 200],
        ['/oauth2/login', words['login.start_again.title'], 400],
        ['/nothing', wordsIn(SHARED, lang)['error.not_found.title'], 404],
        ['/oauth2/auth', words['error.title'], 400],
      ] as const) {
        const browser = createBrowser(server.baseUrl)
        const page = await browser.visit(path, { 'accept-language': `${lang}, en;q=0.5` })
        expect([page.status, langOf(page.text)], path).to.deep.equal([status, [lang, dir]])
        expect(page.text).to.include(`<h1>${title}</h1>`)
        expect(page.headers.get('content-language')).to.equal(lang)
        expect(page.headers.get('vary')).to.include('Accept-Language')
      }
    })
  }

  it('are in what the sign-in asks for by ui_locales, before that of the browser, to its end', async () => {
    const browser = createBrowser(server.baseUrl)
    const headers = { 'accept-language': 'fr' }
    const begun = await browser.get('/demo/start', headers)
    const url = new URL(begun.location ?? '')
    url.searchParams.set('ui_locales', 'xx ar de')
    url.searchParams.set('prompt', 'consent')
    const login = await browser.visit(url.href, headers)
    expect(langOf(login.text)).to.deep.equal(['ar', 'rtl'])
    const typed = { ...login.hidden, username: 'alice' }
    const wrong = { ...typed, password: 'wrong' }
    const refused = await browser.postForm('/oauth2/login', wrong, headers)
    expect([refused.status, langOf(refused.text)]).to.deep.equal([401, ['ar', 'rtl']])
    const right = { ...typed, password: 'alice-password' }
    const consent = await browser.submit('/oauth2/login', right, headers)
    expect([consent.page, langOf(consent.text)]).to.deep.equal(['consent', ['ar', 'rtl']])
    expect(consent.text).to.include('\u2068Demo client\u2069')
  })

  it('are in English where nothing that is asked for is there', async () => {
    const page = await createBrowser(server.baseUrl).get('/', { 'accept-language': 'xx' })
    expect(langOf(page.text)).to.deep.equal(['en', 'ltr'])
  })

  it('have the icon and the footer of the others', async () => {
    const browser = createBrowser(server.baseUrl)
    const page = await browser.get('/mailbox')
    expect(page.text).to.match(/<link rel="icon" href="\/oauth2\/account-flows\.svg"/)
    expect((await browser.get('/oauth2/account-flows.svg')).status).to.equal(200)
    expect(page.headers.get('content-security-policy')).to.include("img-src 'self'")
    const footer = /<footer class="links">.*<\/footer>/s.exec(page.text)?.[0]
    expect(footer).to.match(/href="\/".*Back to sign-in/)
  })
})
