import { expect } from 'chai'
import type { AdapterPayload } from 'oidc-provider'
import type { Stored } from '../../src/store/record-store.ts'
import { AUDIT_LOG } from '../../src/store/audit.ts'
import { PROVIDER_RECORDS } from '../../src/store/provider-records.ts'
import { flowsStore, purge } from '../../src/store/index.ts'
import { memoryStore } from '../../src/store/memory/store.ts'
import { adapterOn, keptInMemory } from '../support/kept.ts'
import { beforeFirst } from '../support/records.ts'
import { movableClock, moveTime } from '../support/time.ts'
import {
  after as later,
  hour,
  minute,
  sampleClaim,
  sampleMailJob,
  samplePendingLogin,
  sampleResetToken,
  sampleVerificationToken,
} from './contract/samples.ts'

const numbers = (length: number) => Array.from({ length }, (_, number) => number)
const HOUR = 3600

describe('However many records an account has,', () => {
  it('its live reset link is revoked', async () => {
    const { resetTokens } = keptInMemory()
    const tokens = numbers(1_002).map((n) =>
      sampleResetToken({ createdAt: later(n), requestedAt: later(n) }),
    )
    for (const token of tokens) await resetTokens.issue(token)
    await resetTokens.revoke({ userId: 'ann' }, later(minute))
    const claims = tokens.map(({ id }) =>
      resetTokens.claim({ id }, sampleClaim({ at: later(minute + 1) })),
    )
    expect((await Promise.all(claims)).filter(Boolean)).to.deep.equal([])
    const [at, expiresAt] = [later(hour), later(2 * hour)]
    const next = sampleResetToken({ createdAt: at, requestedAt: at, expiresAt })
    await resetTokens.issue(next)
    const claim = sampleClaim({ at: later(hour + 1) })
    expect(await resetTokens.claim(next, claim)).to.include({ id: next.id })
  })

  it('its verification links end by one that is used', async () => {
    const { verificationTokens } = keptInMemory()
    const tokens = numbers(1_002).map((n) => sampleVerificationToken({ createdAt: later(n) }))
    for (const token of tokens) await verificationTokens.issue(token)
    await verificationTokens.use('ann', ({ id }) => id === tokens[500]!.id, later(1_100))
    expect(await verificationTokens.latestExpiry(later(1_100))).to.equal(undefined)
  })

  it('the last link that nobody used is known', async () => {
    const { verificationTokens } = keptInMemory()
    const [unused, ...used] = numbers(1_002).map((n) =>
      sampleVerificationToken({ userId: `${n}`, expiresAt: later(minute + n) }),
    )
    for (const token of [unused!, ...used]) await verificationTokens.issue(token)
    for (const { userId } of used) await verificationTokens.use(userId, () => true, later(1))
    expect(await verificationTokens.latestExpiry(later(1))).to.deep.equal(unused?.expiresAt)
  })

  it('its newest request for a mail is seen', async () => {
    const { outbox } = keptInMemory(movableClock)
    const add = (id: string) => outbox.add(sampleMailJob({ id, accountId: 'ann' }))
    for (const n of numbers(1_000)) await add(`${n}`)
    await moveTime(10)
    await add('newest')
    const found = await outbox.requestsOf('ann', 'password_reset')
    expect(found[0]?.id).to.equal('newest')
  })
})

describe('Hits that processes count whose clocks differ', () => {
  it('are one count (RATE-12)', async () => {
    const store = memoryStore()
    const behind = { ...movableClock, now: () => new Date(Date.now() - 50) }
    const both = [movableClock, behind].map((clock) => flowsStore({ ...store }, clock))
    const counts: number[] = []
    for (const n of numbers(8)) counts.push((await both[n % 2]!.limits.hit('key', hour)).count)
    expect(counts).to.deep.equal([1, 2, 3, 4, 5, 6, 7, 8])
  })
})

describe('Two processes', () => {
  /** The second one does its work once the first one has found records, before it changes them. */
  function meanwhile(work: (other: ReturnType<typeof flowsStore>) => Promise<unknown>) {
    const inner = memoryStore(movableClock)
    const other = flowsStore({ ...inner }, movableClock)
    let isDone = false
    const store: typeof inner = {
      ...inner,
      async find(...asked) {
        const found = await inner.find(...asked)
        if (!isDone) await work(other)
        isDone = true
        return found
      },
    }
    return { one: flowsStore(store, movableClock), other }
  }

  it('that give the same hits back give them back once', async () => {
    const inner = memoryStore(movableClock)
    const both = [1, 2].map(() => flowsStore({ ...inner }, movableClock))
    for (const _hit of numbers(5)) await both[0]!.limits.hit('key', hour)
    const given = await Promise.all(both.map(({ limits }) => limits.giveBack('key', 5)))
    expect(given.toSorted((a, b) => a - b)).to.deep.equal([0, 5])
    expect((await both[0]!.limits.hit('key', hour)).count).to.equal(1)
  })

  it('keep a login that one of them renews while the other one makes room', async () => {
    const oldest = samplePendingLogin({ createdAt: later(0) })
    const renewed = { ...oldest, createdAt: later(5) }
    const { one, other } = meanwhile(({ pendingLogins }) => pendingLogins.save(renewed, 9))
    await other.pendingLogins.save(oldest, 9)
    await other.pendingLogins.save(samplePendingLogin({ createdAt: later(1) }), 9)
    await one.pendingLogins.save(samplePendingLogin({ createdAt: later(2) }), 2)
    expect(await one.pendingLogins.find({ id: oldest.id })).to.deep.include(renewed)
  })

  it('keep what came later than the end of an account', async () => {
    const secrets = [Buffer.alloc(32, 1)]
    const at = (ts: number) => ({ result: { login: { accountId: 'ann', ts } } })
    const save = (store: ReturnType<typeof flowsStore>, ts: number) =>
      adapterOn(store, secrets).of('Interaction').upsert('1', at(ts), HOUR)
    const { one, other } = meanwhile((store) => save(store, 9))
    await save(other, 1)
    const { of } = adapterOn(one, secrets)
    const isEnded = ({ result }: AdapterPayload) => (result?.login?.ts ?? 0) < 5
    await of('Interaction').destroyByAccountId('ann', isEnded)
    expect(await of('Interaction').find('1')).to.deep.equal(at(9))
    await of('Interaction').destroyByAccountId('ann', () => true)
    expect(await of('Interaction').find('1')).to.equal(undefined)
  })
})

describe('Damaged records', () => {
  const damaged = ({ id, revision }: Stored): Stored => ({
    id,
    revision,
    was: undefined,
    damaged: 'text of the record is missing',
  })

  it('that fill a page hide none behind it', async () => {
    const inner = memoryStore()
    const { audit } = flowsStore(inner, movableClock)
    for (const n of numbers(250))
      await audit.record({ id: `${n}`, type: 'email_login_blocked', at: later(n) }, hour)
    const store: typeof inner = {
      ...inner,
      find: async (kind, query) =>
        (await inner.find(kind, query)).map((one) => (one.id === 'honest' ? one : damaged(one))),
    }
    await inner.swap(AUDIT_LOG, [
      {
        id: 'honest',
        revision: undefined,
        next: { type: 'x', at: later(0), recorded_at: later(-1), purge_at: later(hour) },
        becomes: 'r',
      },
    ])
    const listed = await flowsStore(store, movableClock).audit.list({ limit: 5 })
    expect(listed.map(({ id }) => id)).to.deep.equal(['honest'])
  })

  it('are removed once they are over, and hold up no other', async () => {
    const inner = memoryStore()
    const over = { model: 'Session', expires_at: new Date(Date.now() - 1) }
    const changes = numbers(700).map((n) => ({
      id: `${n}`,
      revision: undefined,
      next: over,
      becomes: `${n}`,
    }))
    await inner.swap(PROVIDER_RECORDS, changes)
    const store: typeof inner = {
      ...inner,
      purges: false,
      find: async (kind, query) =>
        (await inner.find(kind, query)).map((one) => ({ ...damaged(one), revision: '' })),
    }
    await purge(store, [PROVIDER_RECORDS])
    expect(inner.all(PROVIDER_RECORDS)).to.deep.equal([])
    // A store need not know what it is to change nothing.
    const swap = () => Promise.reject(new Error('nothing is over'))
    await purge({ ...store, swap }, [PROVIDER_RECORDS])
  })
})

describe('flows.adapter()', () => {
  it('consumes what it found by one command', async () => {
    const inner = memoryStore()
    const commands: string[] = []
    const store: typeof inner = {
      ...inner,
      get: (...asked) => (commands.push('get'), inner.get(...asked)),
      swap: (...asked) => (commands.push('swap'), inner.swap(...asked)),
    }
    const codes = adapterOn(flowsStore(store, movableClock)).of('AuthorizationCode')
    await codes.upsert('1', { grantId: 'g' }, HOUR)
    await codes.find('1')
    await codes.consume('1')
    expect(commands).to.deep.equal(['swap', 'get', 'swap'])
  })

  it('brings back nothing that was removed while it starts', async () => {
    const inner = memoryStore()
    const [old, next] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
    const tokens = adapterOn(flowsStore(inner, movableClock), [old]).of('RegistrationAccessToken')
    await tokens.upsert('1', { clientId: 'app' })
    await tokens.upsert('2', { clientId: 'app' })
    let isFirst = true
    const store: typeof inner = {
      ...inner,
      async swap(...asked) {
        if (isFirst) await tokens.destroy('1')
        isFirst = false
        return inner.swap(...asked)
      },
    }
    const rotated = adapterOn(flowsStore(store, movableClock), [next, old])
    await rotated.start()
    const found = rotated.of('RegistrationAccessToken')
    expect(await found.find('1')).to.equal(undefined)
    expect(await found.find('2')).to.deep.equal({ clientId: 'app' })
  })

  it('takes any time: that of a client, none left, and one that is over beside one that lives', async () => {
    const { of } = adapterOn(keptInMemory(movableClock), [], movableClock)
    const seen = of('ReplayDetection')
    for (const [id, seconds] of Object.entries({ far: 1e15, farther: 1e300 })) {
      await seen.upsert(id, { jti: id }, seconds)
      expect(await seen.find(id)).to.deep.equal({ jti: id })
    }
    await of('Interaction').upsert('1', { iat: 1 }, 0)
    expect(await of('Interaction').find('1')).to.equal(undefined)
    for (const n of numbers(20)) {
      const uid = `u${n}`
      await of('Session').upsert(`old ${n}`, { uid }, -1)
      await of('Session').upsert(`new ${n}`, { uid }, HOUR)
      expect(await of('Session').findByUid(uid)).to.deep.equal({ uid })
      // As an older request does that ends later, under the id of before.
      await of('Session').upsert(`former ${n}`, { uid, acr: 'former' }, HOUR - 1)
      expect(await of('Session').findByUid(uid)).to.deep.equal({ uid })
    }
  })
})

describe('Events of one process', () => {
  it('are told in the order in which they were recorded, newest first', async () => {
    const { audit } = keptInMemory(movableClock)
    const ids = numbers(50).map((n) => `event ${(n * 7) % 50}`)
    for (const id of ids)
      await audit.record({ id, type: 'email_login_blocked', at: later(0) }, hour)
    const listed = await audit.list({ limit: 50 })
    expect(listed.map(({ id }) => id)).to.deep.equal(ids.toReversed())
  })
})

describe('A verification token', () => {
  it('is told as void where another process voids it just before it is marked', async () => {
    const { records, verificationTokens } = keptInMemory()
    const elsewhere = flowsStore({ ...records }, movableClock).verificationTokens
    await verificationTokens.issue(sampleVerificationToken())
    beforeFirst(records, 'swap', () => elsewhere.revoke({ userId: 'ann' }, new Date(0)))
    const used = await verificationTokens.use('ann', () => true, later(1))
    expect(used.map(({ expiresAt }) => expiresAt)).to.deep.equal([new Date(0)])
  })
})
