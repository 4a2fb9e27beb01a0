import { expect } from 'chai'
import { createBrowser } from '../support/browser.ts'
import { startExampleServer, type ExampleServer } from '../support/example-server.ts'
import { decodeEntities } from '../support/user-agent.ts'

describe('The example server, on the way back from a reset', () => {
  let server: ExampleServer

  before(async function () {
    this.timeout(60_000)
    server = await startExampleServer()
  })
  after(() => server?.stop())

  it('fills in the username from login_hint, as text, and hands ui_locales on', async () => {
    const browser = createBrowser(server.baseUrl)
    const begun = await browser.get('/demo/start')
    const url = new URL(begun.location ?? '')
    const hint = 'alice"><b>'
    url.searchParams.set('login_hint', hint)
    url.searchParams.set('ui_locales', 'de en')
    const page = await browser.visit(url.pathname + url.search)
    expect([page.page, page.mode]).to.deep.equal(['login', 'form'])
    const [input = ''] = /<input[^>]*id="username"[^>]*>/.exec(page.text) ?? []
    expect(decodeEntities(/value="([^"]*)"/.exec(input)?.[1] ?? '')).to.equal(hint)
    const href = /href="([^"]*forgot-password[^"]*)"/.exec(page.text)?.[1] ?? ''
    const asked = await browser.visit(decodeEntities(href))
    expect(asked.hidden).to.include({ client_id: 'demo', ui_locales: 'de en' })

    const form = { ...page.hidden, username: 'alice', password: 'alice-password' }
    const signedIn = await browser.submit('/oauth2/login', form)
    expect([signedIn.page, signedIn.mode]).to.deep.equal(['demo', 'signed_in'])
  })

  it('answers the well-known address for changing passwords, and no other there', async () => {
    const browser = createBrowser(server.baseUrl)
    const page = await browser.visit('/.well-known/change-password')
    expect([page.page, page.mode]).to.deep.equal(['forgot-password', 'form'])
    const other = await browser.get('/.well-known/resource-that-should-not-exist')
    expect(other.status).to.equal(404)
  })
})
