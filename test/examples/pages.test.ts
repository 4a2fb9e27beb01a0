import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import type { Log } from '../../src/contract/index.ts'
import { createViews } from '../../src/views/index.ts'
import { createBrowser, expectPage, createUserAgent } from '../support/user-agent.ts'
import { refusedExampleServer, suiteExampleServer } from '../support/example-server.ts'
import { viewsDirectory } from '../support/words.ts'

const EXAMPLE = new URL('../../examples/server/', import.meta.url)
const SHARED = new URL('../../views/locales/', import.meta.url)
const THEME = fileURLToPath(new URL('../../examples/theme', import.meta.url))
const CUSTOMIZING = readFileSync(new URL('../../docs/customizing.md', import.meta.url), 'utf8')

type Words = Record<string, string>

const wordsIn = (folder: URL, lang: string): Words =>
  JSON.parse(readFileSync(new URL(`${lang}.json`, folder), 'utf8'))
const languagesIn = (folder: URL) => readdirSync(folder).map((file) => file.replace('.json', ''))
const placeholders = (words: Words) =>
  Object.entries(words).map(([key, text]) => [key, ...(text.match(/\{\w+\}/g) ?? [])].join(' '))

const OWN = new URL('words/', EXAMPLE)
const LANGUAGES = languagesIn(OWN)
const ENGLISH = wordsIn(OWN, 'en')

/** How other people spell it. */
const OTHER_SPELLINGS = {
  en: /e-mail/i,
  de: /\bemail|(?<!e-)\bmails?\b/i,
  fr: /courriel|\bemail|(?<!e-)\bmails?\b/i,
  es: /e-?mail/i,
  it: /e-mail|\bmails?\b/i,
  nl: /\bemail|testmail|(?<!e-)\bmails?\b/i,
  'pt-BR': /\bemail|(?<!e-)\bmails?\b/i,
  'zh-Hans': /电子邮/,
}

describe('The words of the example', () => {
  it('are there in the languages of the package, and say the same in each', () => {
    expect(LANGUAGES).to.deep.equal(languagesIn(SHARED))
    for (const lang of LANGUAGES) {
      expect(placeholders(wordsIn(OWN, lang)), lang).to.deep.equal(placeholders(ENGLISH))
    }
  })

  it('spell "email" in one way in each language, like those of the package', () => {
    for (const [lang, other] of Object.entries(OTHER_SPELLINGS)) {
      const all = Object.values({ ...wordsIn(SHARED, lang), ...wordsIn(OWN, lang) })
      expect(all.filter((text) => other.test(text))).to.deep.equal([])
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
    const url = new URL((await browser.get('/demo/start', headers)).location ?? '')
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

describe('VIEWS_DIRECTORY of the example server [full]', () => {
  const server = suiteExampleServer({ VIEWS_DIRECTORY: THEME, OAUTH_PATH: '/oauth2' })

  it('shows the theme: around the page, in its words, in its colours and in its language', async () => {
    const agent = createUserAgent()
    const url = `${server.baseUrl}/oauth2/forgot-password`
    const page = await agent.get(url)
    expectPage(page, 200, 'forgot-password', 'form')
    const header = /<header class="harbour"><svg .*<span>Harbour<\/span><\/header><main /s
    expect(page.text).to.match(header)
    expect(page.text).to.match(/<h1>Lost your Harbour password\?<\/h1>.*<footer class="help">/s)
    const css = await agent.get(`${server.baseUrl}/oauth2/account-flows.css`)
    expect(css.text).to.match(/--accent: #1d4fb4;.*--accent: #0b6b5d;/s)
    const dutch = await agent.get(url, { 'accept-language': 'nl-BE' })
    expect(dutch.text).to.match(/<html lang="nl" dir="ltr">.*Wachtwoord van Harbour vergeten\?/s)
    expect((await agent.post(url, { identifier: 'alice', ...page.hidden })).mode).to.equal('sent')
  })

  it('is refused with exit code 2 and one sentence where a file is wrong', async () => {
    const views = viewsDirectory({ 'pages/error.pug': 'p(' })
    const { exitCode, errors } = await refusedExampleServer({ VIEWS_DIRECTORY: views })
    expect(exitCode).to.equal(2)
    expect(errors).to.match(/^VIEWS_DIRECTORY: pages\/error\.pug, line 1: /m)
  })
})

describe('docs/customizing.md', () => {
  const logged: Parameters<Log>[] = []
  const viewsOf = (directory: string) =>
    createViews('/oauth2', { viewsDirectory: directory, log: (...line) => void logged.push(line) })
  const examples = [
    ...CUSTOMIZING.matchAll(
      /`((?:pages|mails|locales|theme)[\w./-]*)`[^`\n]*\n(?:[^`\n][^\n]*\n)*\n```\w*\n(.*?)```/gs,
    ),
  ].map(([, name = '', text = '']) => ({ name, text }))

  it('has an example of each way', () => {
    expect(examples.map(({ name }) => name)).to.deep.equal([
      'theme.css',
      'locales/en.json',
      'locales/sv.json',
      'pages/partials/head.pug',
      'pages/layout.pug',
      'pages/error.pug',
      'mails/password-reset.txt',
      'mails/partials/colors.pug',
    ])
  })

  for (const { name, text } of examples) {
    it(`${name} as it is there changes what it says`, () => {
      const parts = {
        'locales/en.json': '{"harbour.help":"Ring us"}',
        'pages/partials/mark.svg': '<svg/>',
      }
      const files = {
        ...(name === 'pages/layout.pug' || name === 'pages/error.pug' ? parts : {}),
        [name]: text,
      }
      const looks = (views = createViews('/oauth2')) => [
        views.page('error', { mode: 'error' }).html,
        views.page('forgot-password', { mode: 'form', parameters: {} }, { asked: 'sv' }).html,
        views.mail('password-reset', {
          username: 'ada',
          link: 'https://id.example/oauth2/reset-password?token=t',
          at: new Date(0),
          lifetimeMs: 3_600_000,
        }),
        views.stylesheet.text,
      ]
      expect(looks(viewsOf(viewsDirectory(files)))).not.to.deep.equal(looks())
      expect(logged.filter(([level]) => level === 'error')).to.deep.equal([])
    })
  }

  it('and examples/theme has nothing that nothing uses', () => {
    logged.length = 0
    viewsOf(THEME)
    expect(logged).to.deep.equal([])
  })
})
