import { expect } from 'chai'
import { onBothStores } from '../support/both-stores.ts'
import { startHarness, type Harness } from '../support/harness.ts'
import { eventsOf } from '../support/observe.ts'
import { createUserAgent } from '../support/user-agent.ts'

const MOST = 5

onBothStores('Limits of requests (D21)', (technology) => {
  let h: Harness
  let networks = 0

  before(async () => {
    h = await startHarness({
      technology,
      settings: { requests_per_ip_per_minute: String(MOST) },
      flows: { trustedProxies: 1 },
    })
  })

  after(() => h.close())

  const newNetwork = () => `198.51.100.${(networks += 1)}`
  const post = (path: string, from: string, form: Record<string, string>) =>
    createUserAgent().post(`${h.oauthUrl}${path}`, form, { 'x-forwarded-for': from })
  const forgot = (identifier: string, from: string) =>
    post('/forgot-password', from, { identifier })

  it('answers 429 with Retry-After to what is too many, and does nothing with it', async () => {
    const user = await h.addUser({ username: `user-${technology}` })
    const from = newNetwork()
    for (let count = 0; count < MOST; count += 1) {
      expect((await forgot('nobody', from)).status).to.equal(200)
    }
    const refused = await forgot(user.username, from)
    expect(refused).to.include({ status: 429, page: 'error', mode: 'too_many_requests' })
    expect(Number(refused.headers.get('retry-after'))).to.be.within(1, 60)
    expect((await forgot('nobody', from)).text).to.equal(refused.text)

    const other = newNetwork()
    expect((await forgot(user.username, other)).status).to.equal(200)
    const { link } = await h.mail.mailTo(user.email ?? '')
    expect(h.mail.mails.filter(({ to }) => to.includes(user.email ?? ''))).to.have.length(1)
    expect(eventsOf(h, 'password_reset_requested', user)).to.have.length(1)
    const limited = h.events.filter(
      ({ type, address }) => type === 'requests_limited' && address === from,
    )
    expect(limited).to.have.length(1)
    expect((await createUserAgent().get(link)).mode).to.equal('form')
  })

  it('lets exactly so many pass of those that come at once', async () => {
    const from = newNetwork()
    const answers = await Promise.all(Array.from({ length: 25 }, () => forgot('nobody', from)))
    expect(answers.filter(({ status }) => status === 200)).to.have.length(MOST)
    expect(answers.filter(({ status }) => status === 429)).to.have.length(25 - MOST)
  })
})
