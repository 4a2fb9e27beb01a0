import { expect } from 'chai'
import { endIn, sampleResetToken } from '../../src/contract/samples.ts'
import { deliverMail } from '../../src/outbox/deliver.ts'
import { requestNotice } from '../../src/outbox/password-changed.ts'
import { recipientOf, resolveJob } from '../../src/outbox/resolve.ts'
import type { NewMailJob } from '../../src/ports/index.ts'
import { ANN, AT_ONCE, outboxByHand } from '../support/outbox-parts.ts'

const CAP = 2
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

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
        expect(await parts.flows.password_reset.hasUsable(ANN, undefined)).to.equal(true)
        move(1_000)
      }
      for (let minute = 0; minute < 120; minute += 1) await aMinute()
      expect(mails.length).to.be.within(1, 2 * (CAP + 60 / minutes))
    })
  }
})

/** Takes all jobs that are due, and sends what may leave. */
function working({ parts, claim }: Awaited<ReturnType<typeof outboxByHand>>) {
  return async () => {
    for (let jobs = await claim(); jobs.length > 0; jobs = await claim())
      for (const job of jobs) {
        const held = await resolveJob(parts, job)
        if (held) await deliverMail(parts, held, AT_ONCE)
      }
  }
}

describe('Notices that a password was changed', () => {
  async function notices(settings: Record<string, string> = {}) {
    const outbox = await outboxByHand({ mails_per_account_per_hour: '1000', ...settings })
    const { parts, users, after, mails, move } = outbox
    const work = working(outbox)
    let changes = 0
    return {
      ...outbox,
      work,
      add: (id: string, email: string, emailVerified: boolean) =>
        users.add({ ...ANN, id, username: id, email, emailVerified }),
      async change(accountId: string, email: string, isClaim?: boolean) {
        changes += 1
        move(1)
        const change = { id: `change-${changes}`, accountId, email, isClaim }
        const requester = { isAdmin: false, address: '192.0.2.1', userAgent: '' }
        await requestNotice(parts.store.outbox, { ...change, carried: {}, requester }, after(0))
        await work()
        return mails.length
      },
      waiting: async () =>
        (await parts.store.outbox.list({ state: 'waiting', limit: 50 }, after(0))).map(
          ({ id, reason }) => [id, reason],
        ),
    }
  }

  it('are 5 an hour for an account with a verified address, and the last one always leaves (RATE-01)', async () => {
    const { change, move, work, mails, waiting, events } = await notices()
    const counts: number[] = []
    for (let round = 0; round < 40; round += 1) counts.push(await change('ann', ANN.email))
    expect(counts.slice(0, 6)).to.deep.equal([1, 2, 3, 4, 5, 5])
    expect(mails).to.have.length(5)
    expect(await waiting()).to.deep.equal([['changed:change-40', 'throttled']])
    move(HOUR_MS - 40)
    await work()
    expect(mails).to.have.length(5)
    move(40)
    await work()
    expect(mails).to.have.length(6)
    expect(events.at(-1)).to.include({ id: 'mail_sent:changed:change-40' })
    expect(await waiting()).to.deep.equal([])
    expect(await change('ann', ANN.email)).to.equal(7)
  })

  it('are one a day for all accounts that did not verify the mailbox, and use up nothing of others (RATE-01)', async () => {
    const { add, change, move, work, mails } = await notices()
    for (const tag of ['', '+1', '+2', '+3']) {
      add(`mallory${tag}`, `Ann${tag}@example.com`, false)
      for (let round = 0; round < 3; round += 1)
        await change(`mallory${tag}`, `Ann${tag}@example.com`)
    }
    expect(mails).to.have.length(1)
    expect(await change('ann', ANN.email)).to.equal(2)
    move(DAY_MS - 12)
    await work()
    expect(mails).to.have.length(3)
    move(DAY_MS)
    await work()
    expect(mails).to.have.length(3)
  })

  it('are one a day also of accounts that leave the mailbox by then, and go to no other one', async () => {
    const { add, change, move, work, mails } = await notices()
    for (const tag of ['+1', '+2', '+3']) {
      add(`mallory${tag}`, `ann${tag}@example.com`, false)
      await change(`mallory${tag}`, `ann${tag}@example.com`, true)
    }
    for (const tag of ['+1', '+2', '+3']) add(`mallory${tag}`, 'thief@example.com', false)
    move(DAY_MS - 2)
    await work()
    expect(mails).to.have.length(2)
    expect(mails.map(({ to }) => to)).not.to.include('thief@example.com')
  })

  it('reach a mailbox that a thief had the account leave', async () => {
    const { add, change } = await notices()
    add('mallory', 'Ann+1@example.com', false)
    expect(await change('mallory', 'Ann+1@example.com')).to.equal(1)
    add('ann', 'thief@example.com', false)
    expect(await change('ann', ANN.email)).to.equal(2)
  })
})

describe('Verification mails to one mailbox', () => {
  /** Accounts that only claim one mailbox; `flood` asks for each of them, all over a day. */
  async function claimed(accounts: number, settings: Record<string, string> = {}) {
    const outbox = await outboxByHand({ mails_per_account_per_hour: '10', ...settings })
    const { users, ask, move, mails } = outbox
    const work = working(outbox)
    const add = (id: string) =>
      users.add({ ...ANN, id, username: id, email: `ann+${id}@example.com`, emailVerified: false })
    const names = Array.from({ length: accounts }, (_, index) => `mallory-${index}`)
    names.forEach(add)
    const wish = async (identifier: string, more: Partial<NewMailJob> = {}) => {
      move(1)
      await ask({ kind: 'email_verification', identifier, ...more })
      await work()
      return mails.length
    }
    const flood = async (times = 6, rounds = 3) => {
      for (let time = 1; time <= times; time += 1) {
        for (let round = 0; round < rounds; round += 1)
          for (const name of names) {
            await wish(name)
            await wish(name, { pendingLoginId: 'a login', accountId: name })
          }
        if (time < times) move(4 * HOUR_MS)
      }
      return mails.length
    }
    return { ...outbox, add, wish, flood }
  }

  for (const settings of [{}, { email_verification_expiration: '5m' }])
    it(`are 30 a day, and a first one of each account (RATE-13), ${JSON.stringify(settings)}`, async () => {
      const { flood, move } = await claimed(5, settings)
      const most = 30 + 2 * 5
      expect(await flood()).to.be.within(30, most)
      move(4 * HOUR_MS)
      expect(await flood()).to.be.within(60, 2 * most)
    })

  it('are half for logins: what strangers ask for by name leaves each of these its mail', async () => {
    const { wish } = await claimed(1, { mails_per_account_per_hour: '0' })
    for (let time = 0; time < 40; time += 1) await wish('mallory-0')
    const before = await wish('mallory-0')
    expect(before).to.equal(15)
    const login = (id: string) =>
      wish('mallory-0', { pendingLoginId: id, accountId: 'mallory-0', identifier: undefined })
    for (let time = 1; time <= 15; time += 1)
      expect(await login(`login ${time}`)).to.equal(before + time)
  })

  it('are 30 a day also where an hour has no limit', async () => {
    const { flood } = await claimed(1, { mails_per_account_per_hour: '0' })
    expect(await flood(1, 50)).to.be.within(30, 32)
  })
})

describe('Strangers who know a name, or claim the same mailbox,', () => {
  it('lock no account out of its mails: without a working link it gets one, and so does its login (RATE-08)', async () => {
    const outbox = await outboxByHand({ mails_per_account_per_hour: String(CAP) })
    const { users, ask, mails, move, parts } = outbox
    const work = working(outbox)
    const count = async (wanted: Partial<NewMailJob>) => {
      const before = mails.length
      move(1)
      await ask(wanted)
      await work()
      return mails.length - before
    }
    const kind = 'email_verification'
    const squatters = Array.from({ length: 12 }, (_, index) => `squatter-${index}`)
    for (const [index, id] of squatters.entries()) {
      const email = `ann+${index}@example.com`
      users.add({ ...ANN, id, username: id, email, emailVerified: false })
    }
    const flood = async () => {
      for (const id of squatters) {
        await ask({ identifier: id })
        await ask({ kind, identifier: id })
        await ask({ kind, accountId: id, identifier: undefined, pendingLoginId: `of ${id}` })
      }
      for (let round = 0; round < 5; round += 1) {
        move(1)
        await ask()
        await ask({ kind, identifier: 'newbie' })
      }
      await work()
    }
    users.add({ ...ANN, id: 'newbie', username: 'newbie', emailVerified: false })

    await flood()
    expect(await parts.flows.password_reset.hasUsable(ANN, undefined)).to.equal(true)
    const newbie = { kind, identifier: undefined, accountId: 'newbie' } as const
    expect(await count({ ...newbie, pendingLoginId: 'a login' })).to.equal(1)
    expect(await count({ ...newbie, pendingLoginId: 'another login' })).to.equal(0)
    // Its link was used: the password is another one.
    const changed = { ...ANN, passwordHash: 'another hash' }
    users.add(changed)
    await flood()
    expect(await parts.flows.password_reset.hasUsable(changed, undefined)).to.equal(true)
    move(DAY_MS)
    await flood()
    expect(await count({ ...newbie, pendingLoginId: 'of another day' })).to.equal(1)
  })
})
