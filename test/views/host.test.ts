import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { expect } from 'chai'
import type { Log } from '../../src/contract/index.ts'
import { createViews, type MailLocals, type Views } from '../../src/views/index.ts'
import { viewsDirectory, words } from '../support/words.ts'

const LINK = 'https://id.example.com/oauth2/reset-password?token=Zm9vYmFy'
const OWN = createViews('/oauth2')

const HOSTS = 'The error page of the host'
const ERROR = `extends layout\nblock content\n  p.hosts ${HOSTS}\n`
const TEAL = { 'theme.css': 'main { color: teal }' }

describe('Views of a host', () => {
  const logged: Parameters<Log>[] = []

  beforeEach(() => logged.splice(0))
  const viewsIn = (viewsDirectory: string, defaultLocale?: string) =>
    createViews('/oauth2', { viewsDirectory, defaultLocale, log: (...line) => logged.push(line) })
  const viewsWith = (files: Record<string, string>) => viewsIn(viewsDirectory(files))

  // A theme has a version of its own.
  const unversioned = (html: string, { stylesheet, script }: Views) =>
    html.replace(`?v=${stylesheet.version}`, '').replace(`?v=${script.version}`, '')
  const error = (views: Views) => unversioned(views.page('error', { mode: 'error' }).html, views)
  const forgot = (views: Views, clientName?: string) => {
    const client = clientName === undefined ? undefined : { clientName }
    const locals = { mode: 'form', parameters: { state: 's' }, client } as const
    return unversioned(views.page('forgot-password', locals).html, views)
  }
  const resetMail = (views: Views, locals: Partial<MailLocals> = {}) => {
    const common = { username: 'ada', link: LINK, at: new Date(0), lifetimeMs: 3_600_000 }
    return views.mail('password-reset', { ...common, ...locals })
  }

  describe('take the place of ours, one at a time', () => {
    it('a page', () => {
      const views = viewsWith({ 'pages/error.pug': ERROR })
      expect(error(views)).to.contain(`<p class="hosts">${HOSTS}</p>`)
      expect(error(views)).to.contain('<main data-page="error" data-mode="error"')
      expect(forgot(views)).to.equal(forgot(OWN))
      expect(resetMail(views)).to.deep.equal(resetMail(OWN))
      expect(logged).to.deep.equal([])
    })

    it('a layout, of which the other pages are made, and a partial, wherever ours are made of it', () => {
      const layout = 'doctype html\nhtml(lang=lang)\n  body\n    header Host\n    block content\n'
      const laidOut = viewsWith({ 'pages/layout.pug': layout })
      const headed = viewsWith({ 'pages/partials/head.pug': 'title The host' })
      for (const page of [error, forgot]) {
        const header = /^<!DOCTYPE html><html lang="en"><body><header>Host<\/header>/
        expect(page(laidOut)).to.match(header)
        expect(page(headed)).to.contain('<head><title>The host</title></head>')
      }
      expect(forgot(laidOut)).to.contain('action="/oauth2/forgot-password"')
      expect(forgot(laidOut)).to.contain('<input type="hidden" name="state" value="s">')
      expect(forgot(headed).split('</head>')[1]).to.equal(forgot(OWN).split('</head>')[1])
    })

    it('a mail, whose HTML shows the parts of its text; and the HTML alone', () => {
      const ours = resetMail(OWN)
      const text = 'From <the> host:\n{mail.greeting_nameless}\r\n\r\n{first}\n\n{link}\n\nBye\n'
      const ofBoth = resetMail(viewsWith({ 'mails/password-reset.txt': text }))
      expect(ofBoth.text).to.equal(`From <the> host:\nHello,\n\n${LINK}\n\nBye\n`)
      const shown = ofBoth.html.replace(/<style>.*<\/style>/s, '').replace(/<[^>]+>/g, '|')
      const first = 'From &lt;the&gt; host:\nHello,'
      const button = words['mail.password-reset.button']
      expect(shown.split(/\|+/).slice(3, 5)).to.deep.equal([first, button])
      expect(ofBoth.html)
        .to.contain(`href="${LINK}"`)
        .and.match(/>Bye<\/p><\/td>/)
      const ofHtml = resetMail(viewsWith({ 'mails/layout.pug': 'a(href=link)= title' }))
      const link = `<a href="${LINK}">${ours.subject}</a>`
      expect([ofHtml.text, ofHtml.html]).to.deep.equal([ours.text, link])
    })

    it('words', () => {
      const changed = {
        'error.error.title': 'The host is sorry',
        'mail.password-reset.subject': 'The host: a new password',
        'forgot-password.identifier': 'Badge <number>',
      }
      const views = viewsWith({ 'locales/en.json': JSON.stringify(changed) })
      expect(error(views)).to.contain('<h1>The host is sorry</h1>')
      expect(resetMail(views).subject).to.equal('The host: a new password')
      const { subject, text } = resetMail(OWN)
      expect(resetMail(views).text).to.equal(text.replace(subject, 'The host: a new password'))
      expect(forgot(views)).to.contain('Badge &lt;number&gt;')
      const refused = ({ page }: Views) => page('error', { mode: 'refused' })
      expect(refused(views)).to.deep.equal(refused(OWN))
      expect(views.locales).to.deep.equal(OWN.locales)
      expect(logged).to.deep.equal([])
    })

    it('a variable of the style sheet, in a theme after ours', () => {
      const views = viewsWith({ 'theme.css': ':root { --accent: teal }' })
      expect(views.stylesheet.text).to.equal(`${OWN.stylesheet.text}\n:root { --accent: teal }`)
      expect(views.script).to.deep.equal(OWN.script)
      const other = viewsWith({ 'theme.css': ':root { --accent: navy }' })
      const versions = [OWN, views, other].map(({ stylesheet }) => stylesheet.version)
      expect(new Set(versions)).to.have.property('size', 3)
    })

    it('the style sheet and the script as a whole', () => {
      const sheets = { 'account-flows.css': 'main { color: navy }', ...TEAL }
      const { stylesheet, script } = viewsWith({ ...sheets, 'account-flows.js': '"host"' })
      expect(script.version).to.not.equal(OWN.script.version)
      expect(stylesheet.text).to.equal('main { color: navy }\nmain { color: teal }')
      expect(script.text).to.equal('"host"')
    })
  })

  describe('can be made of ours', () => {
    it('a file that extends or includes what it replaces is given ours', () => {
      const views = viewsWith({
        'pages/error.pug': 'extends error\nappend content\n  p.hosts Call us',
        'pages/partials/head.pug': "include head\nlink(rel='icon' href='/icon.svg')",
      })
      const withIcon = (html: string) =>
        html.replace('</head>', '<link rel="icon" href="/icon.svg"></head>')
      const added = '<p class="hosts">Call us</p>'
      expect(error(views)).to.contain(added)
      expect(error(views).replace(added, '')).to.equal(withIcon(error(OWN)))
      expect(forgot(views)).to.equal(withIcon(forgot(OWN)))
    })

    it('a name that begins with a slash is below the directory', () => {
      const views = viewsWith({
        'pages/error.pug': ERROR.replace('layout', '/pages/layout'),
        'mails/layout.pug': 'include /pages/partials/badge\na(href=link)',
        'pages/partials/badge.pug': 'b Host',
      })
      expect(error(views)).to.contain(HOSTS)
      expect(resetMail(views).html).to.match(/^<b>Host<\/b>/)
    })

    it('texts of other kinds are included as they are, and words of their own are said', () => {
      const logo = '<svg viewBox="0 0 1 1"><title>Host</title></svg>'
      const content = "include partials/logo.svg\n  p= t('host.call', { number: 7 })"
      const views = viewsWith({
        'pages/partials/logo.svg': logo,
        'pages/error.pug': `extends layout\nblock content\n  ${content}`,
        'locales/en.json': '{"host.call":"Call {number}"}',
      })
      expect(error(views)).to.contain(`${logo}<p>Call 7</p>`)
      expect(logged).to.deep.equal([])
    })
  })

  describe('that cannot be right are refused at the start, each by its name', () => {
    const layout = 'extends layout\nblock content\n'
    const PARTIALS = 'pages/partials'
    const [PAGE, MAIL, EN] = ['pages/error.pug', 'mails/password-reset.txt', 'locales/en.json']
    const [PUG, SV] = ['mails/layout.pug', 'locales/sv.json']
    const WORDS = 'mails/partials/words.pug'
    for (const [what, name, text, told] of [
      ['no pug', PAGE, 'p(', /pages\/error\.pug, line 1: /],
      ['an expression that is none', PAGE, `${layout}  p= 1 +`, /error\.pug, line 3: /],
      ['code that is none', PAGE, `${layout}  - if (`, /pages\/error\.pug/],
      ['a broken file that nothing uses', `${PARTIALS}/x.pug`, '+(', /partials\/x\.pug, line 1: /],
      ['a broken mail', PUG, 'p(', /mails\/layout\.pug, line 1/],
      ['a partial that is not there', PAGE, 'include nowhere', /no pages\/nowhere\.pug/],
      ['a circle', `${PARTIALS}/a.pug`, 'include a', /no pages\/partials\/a\.pug/],
      ['a mutual circle', `${PARTIALS}/head.pug`, 'include ../error', /error\.pug includes itself/],
      ['an empty page', PAGE, ' \n', /pages\/error\.pug is empty/],
      ['an empty mail', MAIL, '', /mails\/password-reset\.txt is empty/],
      ['a text that is not there', PAGE, `${layout}  p= t('no.such')`, /no text no\.such/],
      ['a value that mails are not given', MAIL, '{token}', /password-reset: .*\btoken/],
      ['a link that is none in the HTML', MAIL, 'Open: {link}', /\{link\} must stand alone/],
      ['a page that fails', PAGE, `${layout}  p= no.thing`, /error\.pug:3: Cannot read/],
      ['a page that says nothing', PAGE, 'if mode === 1\n  p', /pages\/error: .*no output/],
      ['a part that lacks what ours need', WORDS, 'mixin other\n  p', /words?\b|not a function/],
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
        expect(() => viewsWith({ [name]: text, ...TEAL }))
          .to.throw(TypeError, told)
          .with.property('message')
          .matches(/^viewsDirectory: /)
      })
    }

    it('all that is wrong is told at once, also two files for one locale', () => {
      const broken = { 'pages/error.pug': 'p(', 'mails/layout.pug': 'p(', 'locales/en.json': '[]' }
      const twice = { 'locales/he.json': '{}', 'locales/iw.json': '{}' }
      const directory = viewsDirectory({ ...broken, ...twice })
      for (const told of [...Object.keys(broken), /second file for he/]) {
        expect(() => viewsIn(directory)).to.throw(TypeError, told)
      }
      for (const name of [...Object.keys(broken), 'locales/iw.json']) rmSync(join(directory, name))
      expect(error(viewsIn(directory))).to.equal(error(OWN))
      expect(viewsIn(directory).locales).to.include('he')
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
        expect(() => viewsIn(directory)).to.throw(TypeError, /pages\/error\.pug: there is no /)
        writeFileSync(join(directory, 'pages/error.pug'), ERROR)
        expect(error(viewsIn(directory))).to.contain(HOSTS)
      })
    }

    const OUTSIDE = 'is a link to a file outside'
    for (const [what, name, target, told] of [
      ['a directory outside', 'pages', '.', OUTSIDE],
      ['a page outside', 'locales/error.pug', 'error.pug', OUTSIDE],
      ['a secret outside', 'theme.css', 'secret.txt', OUTSIDE],
      ['nothing', 'account-flows.css', 'nowhere', 'is a link to a file that does not exist'],
      ['a pipe, and not waited for', 'account-flows.js', 'pipe', 'is not a file'],
    ] as const) {
      it(`what leads to ${what} is refused`, () => {
        const outside = viewsDirectory({ 'secret.txt': 'a secret', 'error.pug': ERROR })
        const directory = viewsDirectory({ 'locales/sv.json': '{}' })
        const path = join(directory, name)
        if (target === 'pipe') execFileSync('mkfifo', [path])
        else symlinkSync(join(outside, target), path)
        expect(() => viewsIn(directory)).to.throw(TypeError, `${name} ${told}`)
        rmSync(path)
        expect(viewsIn(directory).locales).to.include('sv')
      })
    }

    it('a link within the directory is followed, as in mounted configuration, and ends in a circle', () => {
      const directory = viewsDirectory({
        '..data/pages/error.pug': ERROR,
        '..data/theme.css': 'main { color: teal }',
      })
      for (const name of ['pages', 'theme.css']) {
        symlinkSync(join('..data', name), join(directory, name))
      }
      symlinkSync('.', join(directory, 'pages/again'))
      expect(error(viewsIn(directory))).to.contain(HOSTS)
      expect(viewsIn(directory).stylesheet.text).to.contain('teal')
    })

    it('what nothing uses is told, and hidden files are not looked at', () => {
      viewsWith({
        'pages/eror.pug': ERROR,
        'page/error.pug': ERROR,
        'theme.scss': '',
        'locales/en.txt': 'English',
        'mails/pasword-reset.txt': '{link}',
        'pages/.error.pug.swp': 'p(',
        'README.md': 'Our theme',
        'locales/en.json': '{}',
        ...TEAL,
      })
      const unused = ['locales/en.txt', 'mails/pasword-reset.txt', 'page/', 'pages/eror.pug']
      const warning = 'viewsDirectory has files that are not used: check their names'
      const details = { files: [...unused, 'theme.scss'] }
      expect(logged).to.deep.equal([['warn', warning, details]])
    })
  })

  describe('that fail while they are rendered', () => {
    const NAME = 'https://nobody.thought.of/it'
    const fails = (condition: string) => `p Host\nif ${condition} === '${NAME}'\n  = nothing.there`
    const failsForClient = fails('client && client.clientName')
    const said = () => logged.map(([level, , details]) => [level, details?.['template']])
    const places = () => logged.map(([, , details]) => details?.['where'])

    it('give way to ours, are logged with their place, and leave the others alone', () => {
      const views = viewsWith({
        'pages/forgot-password.pug': failsForClient,
        'pages/error.pug': ERROR,
        'mails/layout.pug': `a(href=link)\n${fails('link')}`,
      })
      expect(logged).to.deep.equal([])
      expect(forgot(views, NAME)).to.equal(forgot(OWN, NAME))
      expect(resetMail(views, { link: NAME })).to.deep.equal(resetMail(OWN, { link: NAME }))
      const templates = ['pages/forgot-password', 'mails/layout']
      expect(said()).to.deep.equal(templates.map((template) => ['error', template]))
      expect(places()).to.deep.equal([`${templates[0]}.pug:3`, `${templates[1]}.pug:4`])
      expect(logged[0]?.[2]?.['error']).to.match(/^Cannot read properties of undefined/)
      expect(forgot(views, 'The App')).to.equal('<p>Host</p>')
      expect(resetMail(views).html).to.equal(`<a href="${LINK}"></a><p>Host</p>`)
      expect(error(views)).to.contain(HOSTS)
      expect(logged).to.have.length(2)
    })

    const PAGE = 'forgot-password'
    const EMPTY = `unless client && client.clientName === '${NAME}'\n  p Host`
    const TEXTLESS =
      "p Host\nif client && client.clientName !== 'The App'\n  p= t(client.clientName)"
    const GREETED = /^<p>Host<\/p><p>Hello,<\/p>$/
    for (const [what, name, page, honest, shown] of [
      ['a part of ours', 'partials/client', failsForClient, 'The App', /<p>Host<\/p>/],
      ['a page that comes out empty', PAGE, EMPTY, 'The App', /^<p>Host<\/p>$/],
      ['a text that is not there', PAGE, TEXTLESS, 'mail.greeting_nameless', GREETED],
    ] as const) {
      it(`give way to ours as a whole with ${what}`, () => {
        const views = viewsWith({ [`pages/${name}.pug`]: page })
        expect(forgot(views, NAME)).to.equal(forgot(OWN, NAME))
        expect(said()).to.deep.equal([['error', 'pages/forgot-password']])
        if (name !== PAGE) expect(places()).to.deep.equal(['pages/partials/client.pug:3'])
        expect(forgot(views, honest)).to.match(shown)
        expect(logged).to.have.length(1)
      })
    }
  })

  it('are read when they are made, and never again', () => {
    const mail = { 'mails/password-reset.txt': 'The host:\n \n{link} ' }
    const directory = viewsDirectory({ 'pages/error.pug': ERROR, ...mail, ...TEAL })
    const views = viewsIn(relative(process.cwd(), directory))
    rmSync(directory, { recursive: true })
    mkdirSync(directory)
    expect(error(views)).to.contain(HOSTS)
    expect(resetMail(views).text).to.equal(`The host:\n\n${LINK}\n`)
    expect(views.stylesheet.text).to.contain('teal')
    expect(forgot(views)).to.equal(forgot(OWN))
  })

  describe('speak languages of the host', () => {
    const NYNORSK = { 'error.error.title': 'Noko gjekk gale' }
    const FOUND = { 'error.error.title': 'Found' }
    const { dir: _dir, ...withoutDir } = words

    function speaking(locales: Record<string, object>, defaultLocale?: string) {
      const files = Object.entries(locales).map(
        ([name, words]) => [`locales/${name}.json`, JSON.stringify(words)] as const,
      )
      return viewsIn(viewsDirectory(Object.fromEntries(files)), defaultLocale)
    }

    const error = (views = OWN, asked?: string) =>
      views.page('error', { mode: 'error' }, { asked, accepted: 'x-nothing' })

    it('a file adds one, for whoever reads it; what it lacks is said in the default language, and a warning counts it', () => {
      const views = speaking({ nn: NYNORSK })
      expect(error(views, 'nn').html).to.contain(words['error.error.lead'])
      expect(views.locales).to.have.members([...OWN.locales, 'nn'])
      const shown = /<html lang="nn" dir="ltr">.*<h1>Noko gjekk gale<\/h1>/
      expect(error(views, 'nn-NO').html).to.match(shown)
      expect(error(views, 'nn').lang).to.equal('nn')
      expect(error(views)).to.deep.equal(error())
      expect(error(views, 'en')).to.deep.equal(error(OWN, 'en'))
      const all = Object.keys(withoutDir).length
      const [[level, , details] = [], ...others] = logged
      expect([level, others]).to.deep.equal(['warn', []])
      expect(details).to.deep.include({ locale: 'nn', default: 'en', lacking: all - 1, of: all })
    })

    it('the default is spoken where nothing better is known, and what it lacks is said in English', () => {
      const fy = { 'error.error.title': 'Flater', 'error.error.lead': 'Besykje it letter' }
      const views = speaking({ nn: NYNORSK, fy }, 'fy')
      expect(error(views).lang).to.equal('fy')
      expect(error(views).html).to.contain('Flater')
      expect(error(views, 'en')).to.deep.equal(error(OWN, 'en'))
      expect(error(views, 'nn').html).to.contain('Noko gjekk gale').and.contain('Besykje it letter')
      const refused = views.page('error', { mode: 'refused' }, { asked: 'nn' }).html
      expect(refused).to.contain(words['error.refused.lead'])
    })

    it('the default must be one that there are words in', () => {
      const told = /^defaultLocale must be one of .*\bsv\b/
      expect(() => speaking({ sv: {} }, 'fy')).to.throw(TypeError, told)
      expect(speaking({ sv: {} }, 'SV').locales).to.include('sv')
    })

    it('a whole one is silent, whatever plural forms the language has', () => {
      const { 'characters.one': _one, ...korean } = words
      speaking({ nn: words, ko: korean })
      const polish = { 'characters.few': '{count} znaki', 'characters.many': '{count} znaków' }
      const views = speaking({ pl: { ...words, ...polish } })
      expect(logged).to.deep.equal([])
      const rest = { mode: 'password_too_short', token: 't', maxLength: 64 } as const
      const form = (minLength: number) =>
        views.page('reset-password', { ...rest, minLength }, { asked: 'pl' }).html
      expect(form(3)).to.contain('3 znaki')
      expect(form(8)).to.contain('8 znaków')
    })

    it('mails are written in it', () => {
      const views = speaking({ nn: { ...words, 'mail.test.subject': 'Ei prøve' } })
      const locals = { username: '', link: '', at: new Date(0) }
      const mail = (user?: string) => views.mail('test', locals, { user })
      expect(mail('nn').subject).to.equal('Ei prøve')
      expect(mail('nn').html).to.contain('<html lang="nn" dir="ltr">')
      expect(mail('en')).to.deep.equal(OWN.mail('test', locals))
    })

    it('words that nothing says are told, such as a misspelled key', () => {
      speaking({ en: { 'error.eror.title': 'Sorry', 'error.error.title': 'Sorry' } })
      const details = { locale: 'en', keys: ['error.eror.title'] }
      expect(logged.map(([level, , told]) => [level, told])).to.deep.equal([['warn', details]])
    })

    for (const [dir, other, locales] of [
      ['rtl', 'ltr', 'ar ar-EG he fa ur ps yi dv ckb uz-Arab az-Arab'],
      ['ltr', 'rtl', 'uz sv tr zh-Hant-TW ar-Latn'],
    ] as const) {
      for (const locale of locales.split(' ')) {
        it(`${locale} is ${dir}, unless its file says otherwise`, () => {
          const views = speaking({ [locale]: withoutDir })
          expect(error(views, locale).html).to.contain(`<html lang="${locale}" dir="${dir}">`)
          const told = speaking({ [locale]: { dir: other } })
          expect(error(told, locale).html).to.contain(`<html lang="${locale}" dir="${other}">`)
        })
      }
    }

    for (const [file, locale] of [
      ['EN-gb', 'en-GB'],
      ['zh-hant-tw', 'zh-Hant-TW'],
      ['iw', 'he'],
      ['sr-latn', 'sr-Latn'],
      ['EN', 'en'],
    ] as const) {
      it(`${file}.json is ${locale}, in canonical form`, () => {
        const views = speaking({ [file]: FOUND }, file)
        expect(new Set(views.locales)).to.deep.equal(new Set([...OWN.locales, locale]))
        expect(error(views).lang).to.equal(locale)
        expect(error(views, locale).html).to.contain('<h1>Found</h1>')
        expect(error(views, locale.toLowerCase()).lang).to.equal(locale)
      })
    }
  })
})
