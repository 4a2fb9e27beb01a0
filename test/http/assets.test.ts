import { expect } from 'chai'
import { assetsOf } from '../support/page-forms.ts'
import { rawRequest } from '../support/raw-request.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent } from '../support/user-agent.ts'

describe('The style sheet and the script of the pages (D30)', () => {
  const h = suiteHarness()
  const agent = createUserAgent()

  const cacheControl = async (address: string) => {
    const { status, headers } = await agent.get(address)
    expect(status).to.equal(200)
    return headers.get('cache-control')
  }

  it('are asked for by version, and that is kept for a year', async () => {
    const addresses = assetsOf(await agent.get(`${h.oauthUrl}/forgot-password`))
    expect(addresses).to.have.length(2)
    for (const address of addresses) {
      expect(address).to.match(/\.(css|js)\?v=[\w-]{12}$/)
      expect(await cacheControl(address)).to.equal('public, max-age=31536000, immutable')
    }
  })

  it('are not sent again to a browser that has them', async () => {
    const address = `${h.oauthUrl}/account-flows.css`
    const { headers, text } = await agent.get(address)
    const etag = headers.get('etag') ?? ''
    const ask = (tag: string) =>
      rawRequest(address, { method: 'GET', headers: { 'if-none-match': tag } })
    const again = await ask(etag)
    expect([again.status, again.text]).to.deep.equal([304, ''])
    const other = await ask('"of-another-one"')
    expect([other.status, other.text]).to.deep.equal([200, text])
  })

  it('are not kept under another version, nor under none: the next release has other ones', async () => {
    for (const query of ['', '?', '?v=', '?v=AAAAAAAAAAAA']) {
      const address = `${h.oauthUrl}/account-flows.css${query}`
      expect(await cacheControl(address), query).to.equal('no-cache')
    }
  })
})
