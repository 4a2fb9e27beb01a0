import { expect } from 'chai'
import type { ClientMetadata } from 'oidc-provider'
import {
  accountOf,
  blockedLogin,
  expectExpired,
  isVerified,
  type BlockedLogin,
} from '../support/blocked-login.ts'
import { onBothStores } from '../support/both-stores.ts'
import { CLIENT, startHarness, type Harness } from '../support/harness.ts'
import { createRelyingParty } from '../support/relying-party.ts'
import { createUserAgent, type UserAgent } from '../support/user-agent.ts'

const NATIVE = {
  ...CLIENT,
  client_id: 'native',
  application_type: 'native',
  redirect_uris: ['com.example.app:/cb'],
} as const satisfies ClientMetadata

onBothStores('A verification link whose login still needs consent (4.6)', (technology) => {
  let harness: Harness

  before(async () => {
    harness = await startHarness({ technology, clients: [CLIENT, NATIVE] })
  })
  after(() => harness.close())

  async function expectConsentThenCode(login: BlockedLogin, agent: UserAgent) {
    const answer = await agent.get(login.link)
    expect(answer.status).to.equal(302)
    expect(answer.location).to.match(/\/login\?interaction=/)
    expect(await isVerified(harness, login.user)).to.equal(true)

    const page = await harness.follow(agent, answer)
    expect([page.page, page.mode]).to.deep.equal(['login', 'consent'])
    const back = await harness.follow(agent, await agent.post(page.url, { consent: 'yes' }))
    const { searchParams } = new URL(back.location ?? 'none:')
    expect(back.location?.split('?')[0]).to.equal(login.request.redirectUri)
    expect(searchParams.get('state')).to.equal(login.request.state)
    const tokens = await login.party.exchange(login.request, back.location ?? '')
    expect(tokens.claims()?.sub).to.equal(login.user.id)
    expectExpired(await agent.get(login.link))
  }

  it('leads to the consent page, and then to the code, with prompt=consent (RED-11)', async () => {
    const login = await blockedLogin(harness, { extra: { prompt: 'consent' } })
    await expectConsentThenCode(login, login.agent)
    expect(await accountOf(harness, login.agent)).to.equal(login.user.id)
  })

  it('does the same in another browser', async () => {
    const login = await blockedLogin(harness, { extra: { prompt: 'consent' } })
    await expectConsentThenCode(login, createUserAgent())
  })

  it('does the same for a native client, with its private-use redirect URI', async () => {
    const party = await createRelyingParty(harness.oauthUrl, {
      clientId: NATIVE.client_id,
      redirectUri: NATIVE.redirect_uris[0],
    })
    const login = await blockedLogin(harness, { party })
    await expectConsentThenCode(login, createUserAgent())
  })
})
