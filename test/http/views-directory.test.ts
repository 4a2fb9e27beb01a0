import { expect } from 'chai'
import type { Log, User } from '../../src/index.ts'
import { expectPage } from '../support/expect-page.ts'
import { startHarness, type Harness } from '../support/harness.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { removeViewsDirectories, viewsDirectory } from '../support/views-directory.ts'

describe('The option viewsDirectory', () => {
  const agent = createUserAgent()
  const logged: Parameters<Log>[] = []
  let h: Harness
  let ann: User

  before(async () => {
    const directory = viewsDirectory({
      'pages/error.pug': 'extends error\nappend content\n  p.hosts Call the host',
      'pages/forgot-password.pug':
        "extends forgot-password\nappend content\n  if mode === 'form' && carried.state === 'boom'\n    = nothing.there",
      'locales/en.json': '{"mail.password-reset.subject":"A new password for the host"}',
      'locales/he.json': '{"forgot-password.title":"איפוס הסיסמה"}',
      'theme.css': ':root { --accent: teal }',
      'account-flows.js': '"the script of the host"',
    })
    h = await startHarness({
      flows: {
        viewsDirectory: directory,
        defaultLocale: 'en',
        log: (...line) => void logged.push(line),
      },
    })
    ann = await h.addUser({ username: 'ann' })
  })

  after(async () => {
    await h.close()
    removeViewsDirectories()
  })

  const form = (query = '', headers?: Record<string, string>) =>
    agent.get(`${h.oauthUrl}/forgot-password${query}`, headers)

  it('shows the pages of the host', async () => {
    const page = await agent.request('DELETE', `${h.oauthUrl}/forgot-password`)
    expectPage(page, 405, 'error', 'method_not_allowed')
    expect(page.text).to.contain('<p class="hosts">Call the host</p>')
  })

  it('serves its style and its script', async () => {
    const css = await agent.get(`${h.oauthUrl}/account-flows.css`)
    expect(css.text).to.match(/--accent: #[^]*\n:root { --accent: teal }$/)
    const script = await agent.get(`${h.oauthUrl}/account-flows.js`)
    expect(script.text).to.equal('"the script of the host"')
  })

  it('sends mails in its words, whose links work', async () => {
    const link = await h.resetLink(ann)
    const { mail } = await h.mail.mailTo(ann.email ?? '')
    expect(mail.subject).to.equal('A new password for the host')
    expect((await h.reset(link, 'a new password')).mode).to.equal('done')
  })

  it('answers in a language that was dropped in', async () => {
    const page = await form('', { 'accept-language': 'he-IL,en;q=0.5' })
    expect(page.headers.get('content-language')).to.equal('he')
    expect(page.text).to.match(/<html lang="he" dir="rtl">.*<h1>איפוס הסיסמה<\/h1>/)
    expect((await form('', { 'accept-language': 'tlh' })).headers.get('content-language')).to.equal(
      'en',
    )
  })

  it('shows ours where a template of the host fails, and logs it without what was asked', async () => {
    logged.length = 0
    const page = await form('?state=boom&client_id=nobody')
    expect([page.status, page.mode, page.hidden['state']]).to.deep.equal([200, 'form', 'boom'])
    expect(logged.map(([level, , details]) => [level, details?.['where']])).to.deep.equal([
      ['error', 'pages/forgot-password.pug:4'],
    ])
    expect(JSON.stringify(logged)).not.to.contain('boom')
    const answer = await agent.post(`${h.oauthUrl}/forgot-password`, {
      identifier: 'ann',
      ...page.hidden,
    })
    expect(answer.mode).to.equal('sent')
    expect(logged).to.have.length(1)
  })
})
