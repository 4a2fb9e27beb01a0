import { setImmediate as turn } from 'node:timers/promises'
import { expect } from 'chai'
import { endIn, sampleResetToken } from '../../src/contract/samples.ts'
import { deliverMail } from '../../src/outbox/deliver.ts'
import { recipientOf, resolveJob } from '../../src/outbox/resolve.ts'
import { ANN, AT_ONCE, outboxByHand } from '../support/outbox-parts.ts'

const CAP = 2

describe('Mails within the cap, whose worker dies after it looked the account up', () => {
  it('are not judged again: one of them leaves', async () => {
    const { parts, events, ask, claim, after } = await outboxByHand({
      mails_per_account_per_hour: String(CAP),
    })
    const { resetTokens } = parts.store
    const later = after(120_000)
    const earlier = sampleResetToken({
      userId: ANN.id,
      requestedAt: new Date(0),
      expiresAt: later,
    })
    await resetTokens.issue(earlier)

    for (let count = 0; count < CAP; count += 1) await ask()
    const first = await claim()
    expect(first).to.have.length(CAP)
    const audit = () => Promise.reject(new Error('the audit log is away'))
    for (const job of first) {
      const outcome = await resolveJob({ ...parts, audit }, job).catch(() => 'died')
      expect(outcome).to.equal('died')
    }

    expect(await endIn(resetTokens, earlier, 0)).to.equal('alive')
    expect(await claim('resolve', later)).to.deep.equal([])
    const ready = await claim('send', later)
    expect(ready).to.have.length(CAP)
    const outcomes = await Promise.all(ready.map((job) => recipientOf(parts, job)))
    expect(outcomes.filter((outcome) => outcome !== 'superseded')).to.deep.equal([
      { user: ANN, email: ANN.email },
    ])
    expect(await endIn(resetTokens, earlier, 0)).to.equal('invalidated')
    const requested = events.filter(({ type }) => type === 'password_reset_requested')
    expect(requested.map(({ reason }) => reason)).to.deep.equal(ready.map(() => undefined))
  })
})

describe('The end of a cooldown, which the page counted from a moment before', () => {
  /** Whether a second request gets no mail, so many milliseconds before the end, while the first one is under way. */
  async function refuses(cooldownMs: number, msToEnd: number): Promise<boolean> {
    const { parts, events, ask, claim, move } = await outboxByHand({
      resend_cooldown: `${cooldownMs / 1_000}s`,
      mails_per_account_per_hour: '0',
    })
    await ask()
    for (const job of await claim()) expect(await resolveJob(parts, job)).to.include({ id: job.id })
    move(cooldownMs - msToEnd)
    await ask()
    const [second] = await claim()
    if (!second) throw new TypeError('there is no second request')
    const isRefused = (await resolveJob(parts, second)) === undefined
    expect(events.at(-1)?.reason).to.equal(isRefused ? 'throttled' : undefined)
    return isRefused
  }

  it('is over in its last second, and not before', async () => {
    expect(await refuses(60_000, 1_001)).to.equal(true)
    expect(await refuses(60_000, 1_000)).to.equal(false)
    expect(await refuses(60_000, 0)).to.equal(false)
  })

  it('is over in the last half of a shorter one', async () => {
    expect(await refuses(1_000, 501)).to.equal(true)
    expect(await refuses(1_000, 500)).to.equal(false)
  })
})

describe('An account that a stranger asks links for all the time', () => {
  for (const [life, minutes] of [
    ['5m', 5],
    ['1h', 60],
  ] as const) {
    it(`has one that works all the time, and gets few (links live ${life})`, async () => {
      const { parts, mails, ask, claim, move } = await outboxByHand({
        mails_per_account_per_hour: String(CAP),
        password_reset_expiration: life,
      })
      const aMinute = async () => {
        for (let count = 0; count < 3; count += 1) {
          await ask()
          for (const job of await claim()) {
            const held = await resolveJob(parts, job)
            if (held) await deliverMail(parts, held, AT_ONCE)
          }
        }
        move(59_000)
        expect(await parts.flows.password_reset.hasUsable(ANN, false)).to.equal(true)
        move(1_000)
      }
      for (let minute = 0; minute < 120; minute += 1) await aMinute()
      expect(mails.length).to.be.within(1, 2 * (CAP + 60 / minutes))
    })
  }
})

describe('Requests of one account that are claimed together', () => {
  it('see the mails of those before them: no spare is spent while a mail is under way', async () => {
    const { parts, users, events, ask, claim } = await outboxByHand({
      mails_per_account_per_hour: '1',
    })
    users.add({ ...ANN, id: 'bob', username: 'bob', emailVerified: false })
    const reasons = () =>
      events
        .filter(({ type }) => type === 'email_verification_requested')
        .map(({ reason }) => reason)
    const wanted = { kind: 'email_verification', identifier: 'bob' } as const
    const { store } = parts
    const slow = {
      ...store.outbox,
      async resolve(...given: Parameters<typeof store.outbox.resolve>) {
        await turn()
        return store.outbox.resolve(...given)
      },
    }
    const onDatabase = { ...parts, store: { ...store, outbox: slow } }
    const resolveAll = async () => {
      const jobs = await claim()
      const resolved = await Promise.all(jobs.map((job) => resolveJob(onDatabase, job)))
      return resolved.filter((job) => job !== undefined)
    }

    for (let count = 0; count < 3; count += 1) await ask(wanted)
    const [first, ...more] = await resolveAll()
    expect(more).to.deep.equal([])
    expect(reasons()).to.have.members([undefined, 'throttled', 'throttled'])

    // Their mails are lost: the spare is there still, and it is one.
    if (first) await store.outbox.remove(first)
    await ask(wanted)
    const [spare] = await resolveAll()
    expect(reasons().at(-1)).to.equal(undefined)
    if (spare) await store.outbox.remove(spare)
    await ask(wanted)
    expect(await resolveAll()).to.deep.equal([])
    expect(reasons().at(-1)).to.equal('throttled')
  })
})
