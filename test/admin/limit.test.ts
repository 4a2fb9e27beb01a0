import { expect } from 'chai'
import { onBothStores } from '../support/both-stores.ts'
import { eventually } from '../support/eventually.ts'
import { SHORT_WAITS, suiteHarnessBehindProxy } from '../support/harness-behind-proxy.ts'
import { ADMIN_TOKEN, type Harness } from '../support/harness.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { dump, eventsOf } from '../support/observe.ts'
import { suiteHarness } from '../support/suite-harness.ts'

const LIMIT = 60
const GUESS = 'canary-guess'

type Headers = Record<string, string>

const put = ({ baseUrl }: Harness, headers: Headers) =>
  fetch(`${baseUrl}/admin/api/settings`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ smtp_username: 'somebody' }),
  })

let networks = 0

/** Requests of one harness, from networks that nobody asked from before. */
function requestsOf(h: Harness) {
  function newNetwork(): Headers {
    networks += 1
    return { 'x-forwarded-for': `192.0.2.${networks}` }
  }

  const guess = (from: Headers, authorization = `Bearer ${GUESS}`) =>
    put(h, { ...from, authorization })
  const withToken = (from: Headers) => put(h, { ...from, authorization: `Bearer ${ADMIN_TOKEN}` })
  async function useUp(from: Headers) {
    for (let count = 0; count < LIMIT; count += 1) {
      expect((await guess(from)).status).to.equal(401)
    }
  }
  return { newNetwork, guess, withToken, useUp }
}

describe('Requests without a right admin token, from one network (5.1)', () => {
  const h = suiteHarness({ flows: { trustedProxies: 1 } })
  const { newNetwork, guess, withToken, useUp } = requestsOf(h)

  it(`are answered 401 ${LIMIT} times a minute, and then 429 with Retry-After; nothing changes, and neither the right token nor another network is kept out (ADM-11)`, async () => {
    const from = newNetwork()
    const before = await h.store.settings.read()
    await useUp(from)
    for (let count = 0; count < 3; count += 1) {
      const refused = await guess(from)
      expect(refused.status).to.equal(429)
      expect(refused.headers.get('retry-after')).to.match(/^[1-9]\d?$/)
      expect(Number(refused.headers.get('retry-after'))).to.be.at.most(60)
      expect(refused.headers.get('cache-control')).to.equal('no-store')
      expect(refused.headers.get('content-type')).to.match(/^application\/problem\+json/)
      expect(await refused.json()).to.include({ status: 429, code: 'too_many_requests' })
    }
    expect(await h.store.settings.read()).to.deep.equal(before)
    const allowed = await withToken(from)
    expect(allowed.status).to.equal(200)
    expect(await allowed.json()).to.include({ smtp_username: 'somebody' })
    expect((await guess(newNetwork())).status).to.equal(401)
    expect((await guess(from)).status).to.equal(429)
  })

  it('are counted alike, whatever they show, wherever and with whatever address in front', async () => {
    const from = newNetwork()
    const address = String(from['x-forwarded-for'])
    const kinds: ((count: number) => Promise<Response>)[] = [
      (count) => guess(from, `Bearer ${GUESS}-${count}`),
      () => put(h, from),
      () => guess(from, `Basic ${btoa(GUESS)}`),
      (count) => guess({ 'x-forwarded-for': `203.0.113.${count}, ${address}` }),
      () => fetch(`${h.baseUrl}/admin/api/nothing`, { headers: from }),
      () => fetch(`${h.baseUrl}/admin/api/audit`, { method: 'DELETE', headers: from }),
    ]
    for (let count = 0; count < LIMIT / kinds.length; count += 1) {
      for (const kind of kinds) expect((await kind(count)).status).to.equal(401)
    }
    for (const kind of kinds) expect((await kind(99)).status).to.equal(429)
    expect((await withToken(from)).status).to.equal(200)
  })

  it('leave nothing behind that a right token would add to', async () => {
    const from = newNetwork()
    for (let count = 0; count <= LIMIT; count += 1) {
      expect((await withToken(from)).status).to.equal(200)
    }
    expect((await guess(from)).status).to.equal(401)
    const told = eventsOf(h, 'admin_auth_failed').filter(
      ({ address }) => address === from['x-forwarded-for'],
    )
    expect(told).to.have.length(1)
  })
})

onBothStores('Many requests without a right admin token, at once (5.1)', (technology) => {
  const h = suiteHarness({ technology, flows: { trustedProxies: 1 } })
  const { newNetwork, guess, withToken } = requestsOf(h)

  it(`are told by ${LIMIT + 1} events at most, also of many at once, and none holds what was shown`, async () => {
    const from = newNetwork()
    const answers = await Promise.all(Array.from({ length: 100 }, () => guess(from)))
    const statuses = answers.map(({ status }) => status)
    expect(statuses.filter((status) => status === 401)).to.have.length(LIMIT)
    expect(statuses.filter((status) => status === 429)).to.have.length(100 - LIMIT)
    const told = eventsOf(h, 'admin_auth_failed')
    const reasons = told.map(({ reason }) => reason)
    expect(reasons.filter((reason) => reason === 'wrong_token')).to.have.length(LIMIT)
    expect(reasons.filter((reason) => reason === 'too_many_requests')).to.have.length(1)
    expect(reasons).to.have.length(LIMIT + 1)
    expect(told[0]).to.include({ address: from['x-forwarded-for'] })
    expect(await dump(h)).not.to.include(GUESS)
    const audited = await h.store.audit.list({ types: ['admin_auth_failed'], limit: 1000 })
    expect(audited).to.have.length(LIMIT + 1)
    expect((await withToken(from)).status).to.equal(200)
  })
})

describeWithMongo(
  'Requests without a right admin token, while the database is gone (7) [full]',
  () => {
    const logged: string[] = []
    const { h, proxy } = suiteHarnessBehindProxy(SHORT_WAITS, {
      flows: { log: (level, message) => logged.push(`${level} ${message}`) },
    })

    it('are answered 401 as ever, and the log says that it was not recorded', async () => {
      const before = await h.store.settings.read()
      await proxy.sever()
      for (const headers of [{}, { authorization: `Bearer ${GUESS}` }]) {
        const refused = await put(h, headers)
        expect(refused.status).to.equal(401)
        expect(refused.headers.get('www-authenticate')).to.match(/^Bearer/)
        expect(await refused.json()).to.include({ code: 'unauthorized' })
      }
      expect((await put(h, { authorization: `Bearer ${ADMIN_TOKEN}` })).status).to.equal(503)
      expect(logged).to.include('error a failed admin authentication was not recorded')
      expect(logged.join()).not.to.include(GUESS)

      await proxy.restore()
      const back = await eventually('the database is reached again', () =>
        h.store.settings.read().catch(() => undefined),
      )
      expect(back).to.deep.equal(before)
      expect((await put(h, { authorization: `Bearer ${ADMIN_TOKEN}` })).status).to.equal(200)
    })
  },
)
