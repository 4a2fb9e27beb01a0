import { expect } from 'chai'
import type { User } from '../../src/index.ts'
import { addVerified } from '../support/blocked-login.ts'
import { PASSWORD, startHarness, type Harness } from '../support/harness.ts'
import { linksOf, press } from '../support/page-forms.ts'
import { startRealClients, type RealClient } from '../support/real-clients.ts'
import { createUserAgent, type Answer, type UserAgent } from '../support/user-agent.ts'

const NEW = 'a new password'
const MOST_REDIRECTS = 10

describe('After a reset, with clients that others wrote (4.2)', () => {
  let clients: RealClient[]
  let h: Harness
  before(async () => {
    clients = await startRealClients()
    h = await startHarness({ clients: clients.map(({ metadata }) => metadata) })
    for (const { trust } of clients) trust(h.oauthUrl)
  })
  after(async () => {
    await h.close()
    for (const { close } of clients) close()
  })

  /** As a browser does, from one origin to the other. */
  async function follow(agent: UserAgent, first: Answer): Promise<{ page: Answer; way: string[] }> {
    let page = first
    const way: string[] = []
    while (page.location !== undefined && way.length < MOST_REDIRECTS) {
      way.push(page.location)
      page = await agent.get(page.location)
    }
    return { page, way }
  }

  /** From the front page of the client to the login page, by the client's own request. */
  async function begin(agent: UserAgent, { baseUrl }: RealClient) {
    let { page, way } = await follow(agent, await agent.get(`${baseUrl}/`))
    if (page.url.endsWith('/auth/signin')) {
      ;({ page, way } = await follow(agent, await press(agent, page, '/auth/signin/idp')))
    }
    expect([page.page, page.mode], page.text).to.deep.equal(['login', 'login'])
    const asked = new URL(way.find((url) => url.startsWith(`${h.oauthUrl}/auth?`)) ?? '')
    for (const name of ['code_challenge', 'nonce', 'state']) {
      expect(asked.searchParams.get(name), name).to.be.a('string')
    }
    return { page, asked }
  }

  async function resetIn(agent: UserAgent, user: User, { searchParams }: URL): Promise<string> {
    const query = new URLSearchParams()
    for (const name of ['client_id', 'redirect_uri', 'scope', 'state']) {
      query.set(name, searchParams.get(name) ?? '')
    }
    const form = await agent.get(`${h.oauthUrl}/forgot-password?${query}`)
    await press(agent, form, '/forgot-password', { typed: { identifier: user.username } })
    const { link } = await h.mail.mailTo(user.email ?? '')
    const typed = { password: NEW, confirm_password: NEW }
    const done = await press(agent, await agent.get(link), '/reset-password', { typed })
    expect(done.mode).to.equal('done')
    return linksOf(done)[0] ?? ''
  }

  async function expectSignedIn(agent: UserAgent, login: Answer, client: RealClient, user: User) {
    const credentials = (password: string) => ({ username: user.username, password })
    const refused = await agent.post(login.url, credentials(PASSWORD))
    expect(refused.status).to.equal(401)
    const { page } = await follow(agent, await agent.post(login.url, credentials(NEW)))
    expect([page.status, page.url], page.text).to.deep.equal([200, `${client.baseUrl}/`])
    expect([page.page, page.mode]).to.deep.equal(['client', 'signed_in'])
    expect(page.text).to.include(`>${user.id}<`)
  }

  for (const name of ['express-openid-connect', 'Auth.js']) {
    const named = () => clients.find((client) => client.name === name) as RealClient

    it(`${name} gets the answer to its own request, in the browser of the login`, async () => {
      const [client, user, agent] = [named(), await addVerified(h), createUserAgent()]
      const { page, asked } = await begin(agent, client)
      const onward = await resetIn(agent, user, asked)
      expect(onward).to.equal(page.url)
      await expectSignedIn(agent, await agent.get(onward), client, user)
    })

    it(`${name} begins a request of its own, in another browser`, async () => {
      const [client, user] = [named(), await addVerified(h)]
      const { asked } = await begin(createUserAgent(), client)
      const other = createUserAgent()
      const onward = await resetIn(other, user, asked)
      expect(onward).to.equal(`${client.baseUrl}/`)
      await expectSignedIn(other, (await begin(other, client)).page, client, user)
    })
  }
})
