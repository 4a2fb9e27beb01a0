import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { createPages } from '../../src/http/pages.ts'
import { createViews } from '../../src/views.ts'

describe('The policy of a page whose form leads to a client (D30)', () => {
  const pages = createPages(createViews('/oauth2'))

  async function formAction(redirectUri: string) {
    const server = createServer((req, res) =>
      pages.send(req, res, {
        status: 200,
        name: 'error',
        locals: { mode: 'error' },
        formMayLeadTo: redirectUri,
      }),
    ).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const { headers } = await fetch(`http://127.0.0.1:${port}`)
    server.close()
    const directives = (headers.get('content-security-policy') ?? '').split('; ')
    expect(directives.filter((each) => each.startsWith('form-action'))).to.have.length(1)
    expect(directives).to.have.length(8)
    return directives.find((each) => each.startsWith('form-action'))
  }

  for (const [redirectUri, source] of [
    ['https://app.example:8443/cb?x=1', 'https:'],
    ['http://[::1]:3000/cb', 'http:'],
    ['com.example.app:/cb', 'com.example.app:'],
    ['https://a;sandbox/cb', 'https:'],
    ["https://a'b/cb", 'https:'],
  ] as const) {
    it(`names the scheme of ${redirectUri}, as the client may lead on to another origin`, async () => {
      expect(await formAction(redirectUri)).to.equal(`form-action 'self' ${source}`)
    })
  }

  it('names nothing of what is no address', async () => {
    for (const redirectUri of ['no url', '', '//app.example/cb']) {
      expect(await formAction(redirectUri)).to.equal("form-action 'self'")
    }
  })
})
