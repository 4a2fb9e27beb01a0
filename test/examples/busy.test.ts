import { expect } from 'chai'
import { createBrowser, type Browser } from '../support/browser.ts'
import { startExampleServer, type ExampleServer } from '../support/example-server.ts'

/** More than ever wait of one network, on however many processors. */
const LOGINS = 300

/** Answers what posts the login form, as from a network. */
async function loginForm(browser: Browser) {
  const { hidden } = await browser.visit('/demo/start')
  return (username: string, password: string, network: string) =>
    browser.submit(
      '/oauth2/login',
      { ...hidden, username, password },
      { 'x-forwarded-for': network },
    )
}

describe('The example server while too many sign in at once (RATE-15) [full]', () => {
  let server: ExampleServer

  before(async function () {
    this.timeout(60_000)
    server = await startExampleServer({ BCRYPT_COST: '10', TRUST_PROXY: '1' })
  })
  after(() => server?.kill())

  it('answers 503 with Retry-After where the line of a network is full, and others at once', async function () {
    this.timeout(60_000)
    const browser = createBrowser(server.baseUrl)
    const post = await loginForm(browser)
    const guesses = Array.from({ length: LOGINS }, (_none, index) =>
      post(`nobody-${index}`, 'wrong', '192.0.2.1'),
    )
    const wrong = await post('alice', 'wrong', '192.0.2.2')
    const answers = await Promise.all(guesses)
    expect(wrong.status).to.equal(401)
    const refused = answers.filter(({ status }) => status === 503)
    const served = answers.filter(({ status }) => status === 401)
    expect(refused.length).to.be.above(LOGINS / 2)
    expect(served.length).to.be.above(4)
    expect(refused.length + served.length).to.equal(LOGINS)
    for (const { headers, page, mode } of refused) {
      expect([page, mode, headers.get('retry-after')]).to.deep.equal(['error', 'unavailable', '60'])
    }
    expect(server.output()).to.include('too many passwords wait to be checked')
    expect((await post('alice', 'alice-password', '192.0.2.1')).mode).to.equal('signed_in')
  })

  it('answers 429 with Retry-After to the eleventh wrong guess of a network at a name, known or not, and to no other network', async () => {
    const browser = createBrowser(server.baseUrl)
    const post = await loginForm(browser)
    for (const username of ['bob', 'nobody']) {
      for (let guess = 1; guess <= 10; guess += 1)
        expect((await post(username, 'wrong', '192.0.2.3')).status).to.equal(401)
      for (const password of ['wrong', 'bob-password']) {
        const { status, mode, headers, text } = await post(username, password, '192.0.2.3')
        expect([status, mode]).to.deep.equal([429, 'too_many'])
        expect(Number(headers.get('retry-after'))).to.be.within(1, 900)
        expect(text).to.include('Try again in 15 min')
      }
    }
    expect((await post('bob', 'bob-password', '192.0.2.4')).mode).to.equal('signed_in')
  })
})
