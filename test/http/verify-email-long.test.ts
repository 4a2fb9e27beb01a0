import { expect } from 'chai'
import { onBothStores } from '../support/both-stores.ts'
import { CLIENT, startHarness, type Harness } from '../support/harness.ts'
import { createUserAgent } from '../support/user-agent.ts'

onBothStores('Carried parameters longer than an address can be (4.6, 4.7)', (technology) => {
  let h: Harness

  before(async () => {
    h = await startHarness({ technology })
  })
  after(() => h.close())

  it('are not in the link of a blocked login, which finishes the request with all of them', async () => {
    const bob = await h.addUser({ username: 'bob', emailVerified: false })
    const request = await h.party.begin({ state: 's'.repeat(10_000) })
    expect((await h.login(createUserAgent(), request.url, 'bob')).mode).to.equal('blocked')
    const { link } = await h.mail.mailTo(bob.email ?? '')
    expect(link.length).to.be.below(500)
    const answer = await createUserAgent().get(link)
    expect(answer.status).to.equal(302)
    const state = new URL(answer.location ?? '').searchParams.get('state') ?? ''
    expect(state).to.equal('s'.repeat(10_000))
    await h.party.exchange({ ...request, state }, answer.location ?? '')
  })

  it('are not in the link of a stranger who asks for one, which verifies and leads nowhere', async () => {
    const carol = await h.addUser({ username: 'carol', emailVerified: false })
    const asked = await createUserAgent().post(`${h.oauthUrl}/resend-verification`, {
      username: 'carol',
      client_id: CLIENT.client_id,
      redirect_uri: CLIENT.redirect_uris[0],
      state: 's'.repeat(60_000),
    })
    expect(asked.mode).to.equal('sent')
    const { link } = await h.mail.mailTo(carol.email ?? '')
    expect(link.length).to.be.below(500)
    const agent = createUserAgent()
    const answer = await agent.get(link)
    expect([answer.status, answer.mode]).to.deep.equal([200, 'verified'])
    expect(agent.cookiesFor(h.oauthUrl)).to.equal('')
    expect((await h.users.findById(carol.id))?.emailVerified).to.equal(true)
    expect((await h.signIn(createUserAgent(), 'carol')).location).to.include('code=')
  })
})
