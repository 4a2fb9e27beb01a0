import { expect } from 'chai'
import { createIdentity } from '../../examples/hosts/identity.ts'
import { nodeHttpHost } from '../../examples/hosts/node-http.ts'
import { bcryptWork } from '../support/bcrypt-work.ts'
import { expectPage } from '../support/expect-page.ts'
import { PASSWORD } from '../support/harness.ts'
import { usableRecord } from '../support/observe.ts'
import { createRelyingParty, followWithin } from '../support/relying-party.ts'
import { requestFrom } from '../support/request-from.ts'
import { serve } from '../support/serve.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { turns } from '../support/turns.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { userWithLink } from '../support/person.ts'

const NEW = 'a new password'

describe('Passwords to hash, many at once (RATE-15)', () => {
  const logged: unknown[] = []
  const h = suiteHarness({ flows: { log: (...line) => logged.push(line) } })

  /**
   * Takes every place in the queue of the process that a network has meanwhile: who is served asks again in the same turn of the event
   * loop.
   */
  async function whileQueueIsFull(work: () => Promise<void>, network = '127.0.0.1') {
    let isOver = false
    const refusals: unknown[] = []
    const req = requestFrom(network)
    async function taker() {
      while (!isOver) await h.flows.verifyPassword(undefined, 'anything', req)
    }
    const takers: Promise<unknown>[] = []
    while (refusals.length === 0) {
      takers.push(taker().catch((error: unknown) => refusals.push(error)))
      await turns(1)
    }
    try {
      await work()
    } finally {
      isOver = true
      await Promise.all(takers)
    }
    for (const refusal of refusals)
      expect(refusal).to.include({ name: 'AccountFlowsError', code: 'ERR_OVERLOADED' })
  }

  it('are one alone where one link is posted 60 times at once', async () => {
    const { user, link } = await userWithLink(h)
    const modes: string[] = []
    const jobs = await bcryptWork(async () => {
      const posts = Array.from({ length: 60 }, (_none, index) => h.reset(link, `${NEW} ${index}`))
      for (const { status, mode } of await Promise.all(posts)) modes.push(`${status} ${mode}`)
    })
    expect(jobs).to.deep.equal(['bcrypt:SaltAsyncWorker', 'bcrypt:EncryptAsyncWorker'])
    expect(modes.toSorted()).to.deep.equal(['200 done', ...Array<string>(59).fill('400 invalid')])
    expect(await user.hasPassword(`${NEW} ${modes.indexOf('200 done')}`)).to.equal(true)
  })

  it('of another network hold nothing up: a reset is done, and so is a login', async () => {
    const { user, link } = await userWithLink(h)
    await whileQueueIsFull(async () => {
      expect((await h.reset(link, NEW)).mode).to.equal('done')
      const stored = await h.users.findById(user.id)
      expect(await h.flows.verifyPassword(stored, NEW, requestFrom('192.0.2.2'))).to.equal(true)
      expect(await h.flows.verifyPassword(stored, NEW)).to.equal(true)
    }, '192.0.2.1')
  })

  it('beyond the queue are answered 503 with Retry-After: nothing changed, and the link is good afterwards', async () => {
    const { user, link } = await userWithLink(h)
    logged.splice(0)
    await whileQueueIsFull(async () => {
      const answers = await Promise.all([1, 2, 3].map(() => h.reset(link, NEW)))
      for (const answer of answers) {
        expectPage(answer, 503, 'error', 'unavailable')
        expect(answer.headers.get('retry-after')).to.equal('60')
        expect(answer.headers.getSetCookie()).to.deep.equal([])
        expect(answer.text).not.to.include(user.username)
      }
      // Whatever hashes nothing works.
      expect((await h.reset(link, NEW, 'another one')).mode).to.equal('password_mismatch')
      expect((await createUserAgent().get(link)).mode).to.equal('form')
      expect((await h.forgot('nobody')).mode).to.equal('sent')
    })
    const details = { path: '/reset-password', code: 'ERR_OVERLOADED' }
    const line = ['warn', 'request failed', details]
    expect(logged).to.deep.equal([line, line, line])
    expect(await usableRecord(h, link)).to.include({ userId: user.id })
    expect(await user.hasPassword(PASSWORD)).to.equal(true)
    expect(user.events('password_reset_completed')).to.deep.equal([])
    expect((await h.reset(link, NEW)).mode).to.equal('done')
    expect(await user.hasPassword(NEW)).to.equal(true)
  })

  it('of logins, beyond the queue, too: the hosts of the examples say so, and the login works afterwards', async () => {
    const { server, port, close } = await serve()
    const baseUrl = `http://localhost:${port}`
    const identity = await createIdentity(baseUrl, {
      send: async () => ({ accepted: true }),
    })
    server.on('request', nodeHttpHost(identity))
    try {
      const issuer = `${baseUrl}/oauth2`
      const client = { clientId: 'app', redirectUri: 'https://app.example/cb' }
      const party = await createRelyingParty(issuer, client)
      const agent = createUserAgent()
      const { url } = await party.begin({ scope: 'openid' })
      await followWithin(agent, issuer, await agent.get(url))
      const signIn = (username: string) =>
        agent.post(`${issuer}/login`, { username, password: 'the password of ann' })
      await whileQueueIsFull(async () => {
        const answers = [await signIn('ann'), await signIn('nobody')]
        for (const { status, headers, text } of answers) {
          expect([status, headers.get('retry-after')]).to.deep.equal([503, '60'])
          expect(text).to.equal(answers[0]?.text)
        }
      })
      expect((await signIn('nobody')).status).to.equal(401)
      expect((await signIn('ann')).mode).to.equal('blocked')
    } finally {
      await identity.flows.stop()
      await close()
    }
  })
})
