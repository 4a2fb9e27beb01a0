import { expect } from 'chai'
import { createBrowser } from '../support/browser.ts'
import { startExampleServer, type ExampleServer } from '../support/example-server.ts'

/** More than ever wait, on however many processors. */
const LOGINS = 300

describe('The example server while too many sign in at once (RATE-15) [full]', () => {
  let server: ExampleServer

  before(async function () {
    this.timeout(60_000)
    server = await startExampleServer({ BCRYPT_COST: '10' })
  })
  after(() => server?.kill())

  it('answers 503 with Retry-After to whoever does not fit into the queue, and serves the others', async function () {
    this.timeout(60_000)
    const browser = createBrowser(server.baseUrl)
    const page = await browser.visit('/demo/start')
    const post = (password: string) =>
      browser.submit('/oauth2/login', { ...page.hidden, username: 'alice', password })
    const answers = await Promise.all(Array.from({ length: LOGINS }, () => post('wrong')))
    const refused = answers.filter(({ status }) => status === 503)
    const served = answers.filter(({ status }) => status === 401)
    expect(refused).not.to.deep.equal([])
    expect(served.length).to.be.above(32)
    expect(refused.length + served.length).to.equal(LOGINS)
    for (const { headers, page, mode } of refused) {
      expect([page, mode, headers.get('retry-after')]).to.deep.equal(['error', 'unavailable', '60'])
    }
    expect(server.output()).to.include('too many passwords wait to be checked')
    expect((await post('alice-password')).mode).to.equal('signed_in')
  })
})
