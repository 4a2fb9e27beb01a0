import { expect } from 'chai'
import { createIdentity } from '../../examples/hosts/identity.ts'
import { nodeHttpHost } from '../../examples/hosts/node-http.ts'
import { bcryptWork } from '../support/bcrypt-work.ts'
import { PASSWORD } from '../support/harness.ts'
import { createRelyingParty, followWithin } from '../support/relying-party.ts'
import { requestFrom } from '../support/request-from.ts'
import { serve } from '../support/serve.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { moveTime } from '../support/time.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { userWithLink } from '../support/person.ts'

const HERE = '192.0.2.1'
const ELSEWHERE = '198.51.100.1'
const MINUTE = 60_000

describe('Tries at a name (RATE-28)', () => {
  const h = suiteHarness()
  const limit = (username: string, from = HERE) => h.flows.limitLogin(requestFrom(from), username)

  async function guess(username: string, times: number, from = HERE) {
    const waits = await Promise.all(Array.from({ length: times }, () => limit(username, from)))
    return waits.filter((seconds) => seconds === undefined).length
  }

  it('are ten from one network, in any spelling and also at once, whether or not there is such a user', async () => {
    const { username } = await h.addUser({ username: 'ann.limited' })
    for (const name of [username, 'nobody.limited']) {
      expect(await guess(name, 30)).to.equal(10)
      for (const spelling of [name, name.toUpperCase(), ` ${name}\uFEFF`, name.replace('a', 'á')])
        expect(await limit(spelling), spelling).to.be.within(1, 900)
    }
    expect(await limit('ann.limite')).to.equal(undefined)
  })

  it('are never refused to a network that made none, and go on after 15 minutes', async () => {
    expect(await guess('petra', 30)).to.equal(10)
    expect(await guess('petra', 30, ELSEWHERE)).to.equal(10)
    expect(await guess('petra', 30, '2001:db8:0:1::1')).to.equal(10)
    expect(await limit('petra', '2001:db8:0:1::2')).to.be.within(1, 900)
    expect(await limit('petra', '2001:db8:0:2::1')).to.equal(undefined)
    await moveTime(15 * MINUTE)
    expect(await guess('petra', 30)).to.equal(10)
  })

  it('are given back where the password is right', async () => {
    const user = await h.addUser({ username: 'quinn' })
    for (let time = 0; time < 30; time += 1) {
      const req = requestFrom(HERE)
      expect(await h.flows.limitLogin(req, user.username), `${time}`).to.equal(undefined)
      expect(await h.flows.verifyPassword(user, PASSWORD, req)).to.equal(true)
    }
    for (let time = 0; time < 9; time += 1) {
      const req = requestFrom(HERE)
      expect(await h.flows.limitLogin(req, user.username)).to.equal(undefined)
      expect(await h.flows.verifyPassword(user, 'wrong', req)).to.equal(false)
    }
    const req = requestFrom(HERE)
    expect(await h.flows.limitLogin(req, user.username)).to.equal(undefined)
    // Once for each request.
    for (const _time of [1, 2])
      expect(await h.flows.verifyPassword(user, PASSWORD, req)).to.equal(true)
    expect(await guess(user.username, 2)).to.equal(1)
  })

  it('are forgotten where a mailed link sets a password, in that network', async () => {
    const { user, link } = await userWithLink(h)
    const names = [user.username, user.email ?? '', 'somebody else']
    const guessAtAll = (from: string) => Promise.all(names.map((name) => guess(name, 30, from)))
    await guessAtAll('127.0.0.1')
    await guessAtAll(HERE)
    expect((await h.reset(link, 'a new password')).mode).to.equal('done')
    expect(await guessAtAll('127.0.0.1')).to.deep.equal([10, 10, 0])
    expect(await guessAtAll(HERE)).to.deep.equal([0, 0, 0])
  })

  it('are not forgotten at the address of somebody else, by an account that has it as its name', async () => {
    const owner = await h.addUser({ username: 'owned' })
    const address = owner.email ?? ''
    await h.addUser({ username: address, email: 'eve@users.example' })
    await h.forgot('eve@users.example')
    const { link } = await h.mail.mailTo('eve@users.example')
    expect(await guess(address, 30, '127.0.0.1')).to.equal(10)
    expect((await h.reset(link, 'a new password')).mode).to.equal('done')
    expect(await guess(address, 30, '127.0.0.1')).to.equal(0)
    expect(await guess('eve@users.example', 30, '127.0.0.1')).to.equal(10)
  })

  it('are not forgotten by an account whose name differs in case alone', async () => {
    await h.addUser({ username: 'Twin' })
    const { link } = await userWithLink(h, { username: 'twin' })
    expect(await guess('Twin', 30, '127.0.0.1')).to.equal(10)
    expect((await h.reset(link, 'a new password')).mode).to.equal('done')
    expect(await guess('Twin', 30, '127.0.0.1')).to.equal(0)
  })

  it('end in 429 at the hosts of the examples, with nothing compared; a login elsewhere goes on', async () => {
    const { server, port, close } = await serve()
    const baseUrl = `http://localhost:${port}`
    const transport = { send: async () => ({ accepted: true as const }) }
    const identity = await createIdentity(baseUrl, transport, '/oauth2', { trustedProxies: 1 })
    server.on('request', nodeHttpHost(identity))
    try {
      const issuer = `${baseUrl}/oauth2`
      const party = await createRelyingParty(issuer, {
        clientId: 'app',
        redirectUri: 'https://app.example/cb',
      })
      const agent = createUserAgent()
      const { url } = await party.begin({ scope: 'openid' })
      await followWithin(agent, issuer, await agent.get(url))
      const signIn = (username: string, password: string, from: string) =>
        agent.post(`${issuer}/login`, { username, password }, { 'x-forwarded-for': from })
      for (const username of ['ann', 'nobody']) {
        const statuses: number[] = []
        for (let time = 0; time < 10; time += 1)
          statuses.push((await signIn(username, 'wrong', HERE)).status)
        expect(statuses).to.deep.equal(Array(10).fill(401))
        const work = await bcryptWork(async () => {
          const { status, headers } = await signIn(username, 'the password of ann', HERE)
          expect(status).to.equal(429)
          expect(Number(headers.get('retry-after'))).to.be.within(1, 900)
        })
        expect(work).to.deep.equal([])
      }
      expect((await signIn('ann', 'the password of ann', ELSEWHERE)).mode).to.equal('blocked')
    } finally {
      await identity.flows.stop()
      await close()
    }
  }).timeout(60_000)
})
