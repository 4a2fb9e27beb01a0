import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { expect } from 'chai'
import type { Log } from '../../src/ports/index.ts'
import { createViews, type MailLocals, type Views } from '../../src/views/index.ts'
import { removeViewsDirectories, viewsDirectory } from '../support/views-directory.ts'

type Files = Record<string, string>

const LINK = 'https://id.example.com/oauth2/reset-password?token=Zm9vYmFy'
const MAIL_LOCALS = { username: 'ada', link: LINK, at: new Date(0), lifetimeMs: 3_600_000 }
const OWN = createViews('/oauth2')

const ERROR = `extends layout
block content
  p.hosts The error page of the host
`

describe('Views of a host', () => {
  let logged: Parameters<Log>[]

  beforeEach(() => {
    logged = []
  })

  after(removeViewsDirectories)

  function viewsOf(directory: string, defaultLocale?: string): Views {
    return createViews('/oauth2', {
      viewsDirectory: directory,
      defaultLocale,
      log: (...line) => void logged.push(line),
    })
  }

  const viewsWith = (files: Files) => viewsOf(viewsDirectory(files))

  // A theme has a version of its own.
  const unversioned = (html: string, { stylesheet, script }: Views) =>
    html.replace(`?v=${stylesheet.version}`, '').replace(`?v=${script.version}`, '')
  const error = (views: Views) => unversioned(views.page('error', { mode: 'error' }).html, views)
  const forgot = (views: Views) =>
    unversioned(
      views.page('forgot-password', { mode: 'form', carried: { state: 's' } }).html,
      views,
    )
  const resetMail = (views: Views, locals: Partial<MailLocals> = {}) =>
    views.mail('password-reset', { ...MAIL_LOCALS, ...locals })

  describe('take the place of ours, one at a time', () => {
    it('a page', () => {
      const views = viewsWith({ 'pages/error.pug': ERROR })
      expect(error(views)).to.contain('<p class="hosts">The error page of the host</p>')
      expect(error(views)).to.contain('<main data-page="error" data-mode="error"')
      expect(forgot(views)).to.equal(forgot(OWN))
      expect(resetMail(views)).to.deep.equal(resetMail(OWN))
      expect(logged).to.deep.equal([])
    })

    it('a layout, of which the other pages are made', () => {
      const views = viewsWith({
        'pages/layout.pug':
          'doctype html\nhtml(lang=lang)\n  body\n    header Host\n    block content\n',
      })
      for (const html of [error(views), forgot(views)]) {
        expect(html).to.match(/^<!DOCTYPE html><html lang="en"><body><header>Host<\/header>/)
      }
      expect(forgot(views)).to.contain('action="/oauth2/forgot-password"')
      expect(forgot(views)).to.contain('<input type="hidden" name="state" value="s">')
    })

    it('a partial, wherever ours are made of it', () => {
      const views = viewsWith({ 'pages/partials/head.pug': 'title The host' })
      for (const html of [error(views), forgot(views)]) {
        expect(html).to.contain('<head><title>The host</title></head>')
      }
      expect(forgot(views).split('</head>')[1]).to.equal(forgot(OWN).split('</head>')[1])
    })

    it('a text of a mail, and the HTML of a mail', () => {
      const text = viewsWith({
        'mails/password-reset.txt': 'From the host:\n{link}\n{mail.greeting_nameless}',
      })
      expect(resetMail(text).text).to.equal(`From the host:\n${LINK}\nHello,`)
      expect(resetMail(text).html).to.equal(resetMail(OWN).html)
      const html = viewsWith({ 'mails/password-reset.pug': 'a(href=link)= title' })
      expect(resetMail(html).html).to.equal(`<a href="${LINK}">${resetMail(OWN).subject}</a>`)
      expect(resetMail(html).text).to.equal(resetMail(OWN).text)
    })

    it('words', () => {
      const views = viewsWith({
        'locales/en.json': JSON.stringify({
          'error.error.title': 'The host is sorry',
          'mail.password-reset.subject': 'The host: a new password',
          'forgot-password.identifier': 'Badge <number>',
        }),
      })
      expect(error(views)).to.contain('<h1>The host is sorry</h1>')
      expect(resetMail(views).subject).to.equal('The host: a new password')
      expect(resetMail(views).text).to.equal(resetMail(OWN).text)
      expect(forgot(views)).to.contain('Badge &lt;number&gt;')
      expect(views.page('error', { mode: 'refused' })).to.deep.equal(
        OWN.page('error', { mode: 'refused' }),
      )
      expect(views.locales).to.deep.equal(OWN.locales)
      expect(logged).to.deep.equal([])
    })

    it('a variable of the style sheet, in a theme after ours', () => {
      const views = viewsWith({ 'theme.css': ':root { --accent: teal }' })
      expect(views.stylesheet.text).to.equal(`${OWN.stylesheet.text}\n:root { --accent: teal }`)
      expect(views.script).to.deep.equal(OWN.script)
      expect(views.stylesheet.version).to.not.equal(OWN.stylesheet.version)
      const other = viewsWith({ 'theme.css': ':root { --accent: navy }' })
      expect(other.stylesheet.version).to.not.equal(views.stylesheet.version)
    })

    it('the style sheet and the script as a whole', () => {
      const views = viewsWith({
        'account-flows.css': 'main { color: teal }',
        'theme.css': 'main { color: navy }',
        'account-flows.js': '"host"',
      })
      expect(views.script.version).to.not.equal(OWN.script.version)
      expect(views.stylesheet.text).to.equal('main { color: teal }\nmain { color: navy }')
      expect(views.script.text).to.equal('"host"')
    })
  })

  describe('can be made of ours', () => {
    it('a file that extends or includes what it replaces is given ours', () => {
      const views = viewsWith({
        'pages/error.pug': 'extends error\nappend content\n  p.hosts Call us',
        'pages/partials/head.pug': "include head\nlink(rel='icon' href='/icon.svg')",
      })
      expect(error(views).replace('<p class="hosts">Call us</p>', '')).to.equal(
        error(OWN).replace('</head>', '<link rel="icon" href="/icon.svg"></head>'),
      )
      expect(error(views)).to.contain('Call us')
      expect(forgot(views)).to.equal(
        forgot(OWN).replace('</head>', '<link rel="icon" href="/icon.svg"></head>'),
      )
    })

    it('a name that begins with a slash is below the directory', () => {
      const views = viewsWith({
        'pages/error.pug': ERROR.replace('layout', '/pages/layout'),
        'mails/password-reset.pug': 'include /pages/partials/badge\na(href=link)',
        'pages/partials/badge.pug': 'b Host',
      })
      expect(error(views)).to.contain('The error page of the host')
      expect(resetMail(views).html).to.match(/^<b>Host<\/b>/)
    })

    it('texts of other kinds are included as they are', () => {
      const views = viewsWith({
        'pages/partials/logo.svg': '<svg viewBox="0 0 1 1"><title>Host</title></svg>',
        'pages/error.pug': ERROR.replace('p.hosts', 'include partials/logo.svg\n  p.hosts'),
      })
      expect(error(views)).to.contain('<svg viewBox="0 0 1 1"><title>Host</title></svg><p')
      expect(logged).to.deep.equal([])
    })

    it('and have words of their own', () => {
      const views = viewsWith({
        'pages/error.pug': "extends layout\nblock content\n  p= t('host.call', { number: 7 })",
        'locales/en.json': '{"host.call":"Call {number}"}',
      })
      expect(error(views)).to.contain('<p>Call 7</p>')
      expect(logged).to.deep.equal([])
    })
  })

  describe('that cannot be right are refused at the start, each by its name', () => {
    const layout = 'extends layout\nblock content\n'
    const [PAGE, MAIL] = ['pages/error.pug', 'mails/password-reset.txt']
    const [EN, SV] = ['locales/en.json', 'locales/sv.json']
    for (const [what, name, text, told] of [
      ['no pug', PAGE, 'p(', /pages\/error\.pug, line 1: /],
      ['an expression that is none', PAGE, `${layout}  p= 1 +`, /error\.pug, line 3: /],
      ['code that is none', PAGE, `${layout}  - if (`, /pages\/error\.pug/],
      [
        'a broken file that nothing uses',
        'pages/partials/x.pug',
        '+(',
        /partials\/x\.pug, line 1: /,
      ],
      ['a broken mail', 'mails/password-reset.pug', 'p(', /mails\/password-reset\.pug, line 1/],
      ['a partial that is not there', PAGE, 'include nowhere', /no pages\/nowhere\.pug/],
      ['a circle', 'pages/partials/a.pug', 'include a', /no pages\/partials\/a\.pug/],
      ['an empty page', PAGE, ' \n', /pages\/error\.pug is empty/],
      ['an empty mail', MAIL, '', /mails\/password-reset\.txt is empty/],
      ['a text that is not there', PAGE, `${layout}  p= t('no.such')`, /no text no\.such/],
      ['a value that mails are not given', MAIL, '{token}', /password-reset: .*\btoken/],
      ['a page that fails', PAGE, `${layout}  p= no.thing`, /error\.pug:3: Cannot read/],
      ['a page that says nothing', PAGE, 'if mode === 1\n  p', /pages\/error: .*no output/],
      [
        'a part that lacks what ours need',
        'mails/partials/words.pug',
        'mixin other\n  p',
        /words?\b|not a function/,
      ],
      [
        'a mutual circle',
        'pages/partials/head.pug',
        'include ../error',
        /error\.pug includes itself/,
      ],
      ['no JSON', EN, '{"a":', /locales\/en\.json is not a JSON object/],
      ['a list', EN, '["a"]', /locales\/en\.json is not a JSON object/],
      ['null', SV, 'null', /locales\/sv\.json is not a JSON object/],
      ['a word that is no text', EN, '{"mail.greeting":1}', /en\.json: mail\.greeting/],
      ['an unknown placeholder', EN, '{"mail.greeting":"Hi {name}"}', /no value for \{name\}/],
      ['the same in a new locale', SV, '{"mail.greeting":"Hej {namn}"}', /sv\.json.*\{namn\}/],
      ['a direction that is none', SV, '{"dir":"up"}', /sv\.json: dir must be ltr or rtl/],
      ['a locale that is none', 'locales/pt_BR.json', '{}', /locales\/pt_BR\.json.*BCP 47/],
      ['a locale without a name', 'locales/x.json', '{}', /locales\/x\.json.*BCP 47/],
    ] as const) {
      it(`${what}: ${name}`, () => {
        const directory = viewsDirectory({ [name]: text, 'theme.css': 'main { color: teal }' })
        expect(() => viewsOf(directory))
          .to.throw(TypeError, told)
          .with.property('message')
          .matches(/^viewsDirectory: /)
      })
    }

    it('all that is wrong is told at once', () => {
      const wrong = { 'pages/error.pug': 'p(', 'mails/test.pug': 'p(', 'locales/en.json': '[]' }
      const directory = viewsDirectory(wrong)
      for (const name of Object.keys(wrong)) {
        expect(() => viewsOf(directory)).to.throw(TypeError, name)
      }
      for (const name of Object.keys(wrong)) rmSync(join(directory, name))
      expect(error(viewsOf(directory))).to.equal(error(OWN))
    })

    it('two files for one locale', () => {
      const directory = viewsDirectory({ 'locales/he.json': '{}', 'locales/iw.json': '{}' })
      expect(() => viewsOf(directory)).to.throw(TypeError, /second file for he/)
      rmSync(join(directory, 'locales/iw.json'))
      expect(viewsOf(directory).locales).to.include('he')
    })
  })

  describe('are reached within the directory alone', () => {
    for (const name of [
      '../secret.txt',
      '../../secret.txt',
      '../../../../../../../../etc/passwd',
      '/etc/passwd',
      '/../secret.txt',
      '/pages/../../secret.txt',
      'partials/../../../secret.txt',
      '../unlisted/secret.txt',
    ]) {
      it(`include ${name} is refused`, () => {
        const outer = viewsDirectory({
          'secret.txt': 'a secret',
          'views/unlisted/secret.txt': 'a secret',
          'views/pages/error.pug': `include ${name}`,
        })
        const directory = join(outer, 'views')
        expect(() => viewsOf(directory)).to.throw(TypeError, /pages\/error\.pug: there is no /)
        writeFileSync(join(directory, 'pages/error.pug'), ERROR)
        expect(error(viewsOf(directory))).to.contain('The error page of the host')
      })
    }

    it('a link that leads out is refused, to a file or to a directory', () => {
      const outside = viewsDirectory({ 'secret.txt': 'a secret', 'error.pug': ERROR })
      for (const [link, target] of [
        ['pages', outside],
        ['pages/error.pug', join(outside, 'error.pug')],
        ['theme.css', join(outside, 'secret.txt')],
      ] as const) {
        const directory = viewsDirectory({ 'locales/sv.json': '{}' })
        if (link.includes('/')) mkdirSync(join(directory, 'pages'))
        symlinkSync(target, join(directory, link))
        expect(() => viewsOf(directory), link).to.throw(
          TypeError,
          `${link} is a link to a file outside`,
        )
        rmSync(join(directory, link))
        expect(viewsOf(directory).locales).to.include('sv')
      }
    })

    it('a link within the directory is followed, as in mounted configuration', () => {
      const directory = viewsDirectory({
        '..data/pages/error.pug': ERROR,
        '..data/theme.css': 'main { color: teal }',
      })
      for (const name of ['pages', 'theme.css']) {
        symlinkSync(join('..data', name), join(directory, name))
      }
      expect(error(viewsOf(directory))).to.contain('The error page of the host')
      expect(viewsOf(directory).stylesheet.text).to.contain('teal')
    })

    for (const [what, name, make, told] of [
      [
        'a link that leads nowhere is refused',
        'account-flows.css',
        (path: string) => symlinkSync('nowhere.json', path),
        'is a link to a file that does not exist',
      ],
      [
        'what is neither a file nor a directory is refused, and not waited for',
        'account-flows.js',
        (path: string) => execFileSync('mkfifo', [path]),
        'is not a file',
      ],
    ] as const) {
      it(what, () => {
        const directory = viewsDirectory({ 'theme.css': 'main { color: teal }' })
        make(join(directory, name))
        expect(() => viewsOf(directory)).to.throw(TypeError, `${name} ${told}`)
        rmSync(join(directory, name))
        expect(viewsOf(directory).stylesheet.text).to.contain('teal')
      })
    }

    it('a link in a circle ends', () => {
      const directory = viewsDirectory({ 'pages/error.pug': ERROR })
      symlinkSync('.', join(directory, 'pages/again'))
      expect(error(viewsOf(directory))).to.contain('The error page of the host')
    })

    it('what nothing uses is told, and hidden files are not looked at', () => {
      viewsWith({
        'pages/eror.pug': ERROR,
        'page/error.pug': ERROR,
        'theme.scss': '',
        'theme.css': 'main { color: teal }',
        'locales/en.txt': 'English',
        'mails/pasword-reset.txt': '{link}',
        'pages/.error.pug.swp': 'p(',
        'README.md': 'Our theme',
        'locales/en.json': '{}',
      })
      const unused = ['locales/en.txt', 'mails/pasword-reset.txt', 'page/', 'pages/eror.pug']
      const details = { files: [...unused, 'theme.scss'] }
      expect(logged).to.deep.equal([
        ['warn', 'viewsDirectory has files that are not used: check their names', details],
      ])
    })
  })

  describe('that fail while they are rendered', () => {
    const NAME = 'https://nobody.thought.of/it'
    const fails = (condition: string) => `if ${condition} === '${NAME}'\n  = nothing.there`
    const shown = (views: Views, clientName: string) =>
      views.page('forgot-password', { mode: 'form', carried: {}, client: { clientName } }).html

    it('give way to ours, are logged with their place, and leave the others alone', () => {
      const views = viewsWith({
        'pages/forgot-password.pug': `p Host\n${fails('client && client.clientName')}`,
        'pages/error.pug': ERROR,
        'mails/password-reset.pug': `p Host\n${fails('link')}`,
      })
      expect(logged).to.deep.equal([])
      expect(shown(views, NAME)).to.equal(shown(OWN, NAME))
      expect(resetMail(views, { link: NAME })).to.deep.equal(resetMail(OWN, { link: NAME }))
      expect(
        logged.map(([level, , details]) => [level, details?.['template'], details?.['where']]),
      ).to.deep.equal([
        ['error', 'pages/forgot-password', 'pages/forgot-password.pug:3'],
        ['error', 'mails/password-reset', 'mails/password-reset.pug:3'],
      ])
      expect(logged[0]?.[2]?.['error']).to.match(/^Cannot read properties of undefined/)
      expect(shown(views, 'The App')).to.equal('<p>Host</p>')
      expect(resetMail(views).html).to.equal('<p>Host</p>')
      expect(error(views)).to.contain('The error page of the host')
      expect(logged).to.have.length(2)
    })

    it('in a part of ours, ours is shown as a whole', () => {
      const views = viewsWith({
        'pages/partials/client.pug': `p Host\n${fails('client && client.clientName')}`,
      })
      expect(shown(views, NAME)).to.equal(shown(OWN, NAME))
      expect(shown(views, 'The App')).to.contain('<p>Host</p>')
      expect(logged.map(([, , details]) => details?.['where'])).to.deep.equal([
        'pages/partials/client.pug:3',
      ])
    })

    it('a page that comes out empty is one of them', () => {
      const views = viewsWith({
        'pages/forgot-password.pug': `unless client && client.clientName === '${NAME}'\n  p Host`,
      })
      expect(shown(views, NAME)).to.equal(shown(OWN, NAME))
      const said = logged.map(([level, , details]) => [level, details?.['template']])
      expect(said).to.deep.equal([['error', 'pages/forgot-password']])
      expect(shown(views, 'The App')).to.equal('<p>Host</p>')
    })

    it('a text that is not there is one of them', () => {
      const views = viewsWith({
        'pages/forgot-password.pug':
          "p Host\nif client && client.clientName !== 'The App'\n  p= t(client.clientName)",
      })
      expect(shown(views, NAME)).to.equal(shown(OWN, NAME))
      expect(logged).to.have.length(1)
      expect(shown(views, 'mail.greeting_nameless')).to.equal('<p>Host</p><p>Hello,</p>')
    })
  })

  it('are read when they are made, and never again', () => {
    const directory = viewsDirectory({
      'pages/error.pug': ERROR,
      'mails/password-reset.txt': 'The host: {link}',
      'theme.css': 'main { color: teal }',
    })
    const views = viewsOf(relative(process.cwd(), directory))
    rmSync(directory, { recursive: true })
    mkdirSync(directory)
    expect(error(views)).to.contain('The error page of the host')
    expect(resetMail(views).text).to.equal(`The host: ${LINK}`)
    expect(views.stylesheet.text).to.contain('teal')
    expect(forgot(views)).to.equal(forgot(OWN))
  })
})
