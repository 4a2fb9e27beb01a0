import { fileURLToPath } from 'node:url'
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import type { Log } from '../../src/ports/index.ts'
import { createViews } from '../../src/views/index.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { refusedExampleServer, suiteExampleServer } from '../support/example-server.ts'
import { removeViewsDirectories, viewsDirectory } from '../support/views-directory.ts'

const THEME = fileURLToPath(new URL('../../examples/theme', import.meta.url))
const CUSTOMIZING = readFileSync(new URL('../../docs/customizing.md', import.meta.url), 'utf8')

after(removeViewsDirectories)

describe('VIEWS_DIRECTORY of the example server [full]', () => {
  const server = suiteExampleServer({ VIEWS_DIRECTORY: THEME, OAUTH_PATH: '/oauth2' })

  it('shows the theme: around the page, in its words, in its colours and in its language', async () => {
    const agent = createUserAgent()
    const url = `${server.baseUrl}/oauth2/forgot-password`
    const page = await agent.get(url)
    expect([page.status, page.mode]).to.deep.equal([200, 'form'])
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
    const { exitCode, errors } = await refusedExampleServer({
      VIEWS_DIRECTORY: viewsDirectory({ 'pages/error.pug': 'p(' }),
    })
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
        views.page('forgot-password', { mode: 'form', carried: {} }, { asked: 'sv' }).html,
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
