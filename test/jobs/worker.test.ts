import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { systemClock, type Clock } from '../../src/clock.ts'
import { endIn, sampleMailJob, sampleResetToken } from '../store/contract/samples.ts'
import { createAuthorizeSig, createKeyRing } from '../../src/crypto/keys.ts'
import { createLoginCodes } from '../../src/crypto/login-code.ts'
import { createSecretBox } from '../../src/crypto/secret-box.ts'
import { AccountFlowsError, memoryUsers, type AuditEvent } from '../../src/index.ts'
import { voidEverything } from '../../src/flows/void-links.ts'
import { createGlobalLimit, hasUsableLink } from '../../src/mail/limits.ts'
import type { MailParts } from '../../src/mail/parts.ts'
import { createMailQueue, deliverMail } from '../../src/mail/queue.ts'
import { requestNotice, requestPasswordNotice } from '../../src/flows/request-mail.ts'
import { recipientOf, resolveJob, SEND_LEASE_MS } from '../../src/mail/resolve.ts'
import { retryAllDead, retryMail } from '../../src/mail/retry.ts'
import {
  HANDING_OVER,
  OUT_OF_TIME,
  type MailSlot,
  type OutgoingMail,
} from '../../src/mail/sending.ts'
import { isLater } from '../../src/store/outbox-record.ts'
import { timeText } from '../../src/views/formats.ts'
import type { Kind } from '../../src/store/record-store.ts'
import { endOf } from '../../src/store/tokens.ts'
import type { MailJob, MailStage, NewMailJob } from '../../src/store/index.ts'
import { createSettingsKeeper } from '../../src/settings/settings.ts'
import { createViews } from '../../src/views/index.ts'
import { eventually } from '../support/eventually.ts'
import { sha256 } from '../support/observe.ts'
import { tokenOf } from '../support/person.ts'
import { keptInMemory } from '../support/kept.ts'

const CAP = 2
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

const ANN = {
  id: 'ann',
  username: 'ann',
  email: 'ann@example.com',
  emailVerified: true,
  passwordHash: 'a hash',
  disabled: false,
}

const goesOn = () => new AbortController().signal

const views = createViews('', { log: () => {} })

/** An outbox in memory whose steps a test takes by hand, with a clock that only the test moves. Ann has an account. */
async function outboxByHand(changes: Record<string, string> = {}) {
  let time = Date.now()
  const clock: Clock = { now: () => new Date(time), sleep: async () => {} }
  const store = keptInMemory(clock)
  const users = memoryUsers()
  users.add(ANN)
  const keys = createKeyRing([randomBytes(32)])
  const keeper = createSettingsKeeper(store.settings, createSecretBox(keys), () => {})
  await keeper.change(changes)
  const events: AuditEvent[] = []
  const mails: OutgoingMail[] = []
  const settings = keeper.current
  const parts: MailParts = {
    store,
    users,
    notifications: { appsOf: async () => undefined },
    clients: { identify: async () => ({ parameters: {} }) },
    keyed: {
      authorizeSig: createAuthorizeSig(keys),
      loginCodes: createLoginCodes(keys),
      keyedHash: (text) => text,
    },
    oauthUrl: 'https://id.example',
    views,
    settings,
    globalLimit: createGlobalLimit(store.limits, settings, clock.now),
    async audit(event: AuditEvent) {
      if (!events.some(({ id }) => id === event.id)) events.push(event)
    },
    sender: {
      canSend: () => true,
      close() {},
      // A connection is free at once.
      withSlot: <T>(_stop: AbortSignal, work: (slot: MailSlot) => Promise<T>) =>
        work({
          isFlowing: false,
          open: async () => {},
          async send(mail) {
            mails.push(mail)
            return {}
          },
        }),
    },
    clock,
    log: () => {},
  }
  const after = (ms: number) => new Date(time + ms)
  const move = (ms: number) => void (time += ms)
  const claim = (stage: MailStage = 'resolve', at = after(0)): Promise<MailJob[]> =>
    store.outbox.claim(stage, 50, at, new Date(at.getTime() + 10_000))

  /** What some work asks of the store, such as `swap 2 mail_outbox`, in its order. */
  async function commandsOf(work: () => Promise<unknown>): Promise<string[]> {
    const { records } = store
    const { get, find, swap } = records
    const commands: string[] = []
    const told = (command: string, { name }: Kind) => void commands.push(`${command} ${name}`)
    records.get = (kind, ids) => (told(`get ${ids.length}`, kind), get(kind, ids))
    records.find = (kind, query) => (told('find', kind), find(kind, query))
    records.swap = (kind, all) => (told(`swap ${all.length}`, kind), swap(kind, all))
    await work().finally(() => Object.assign(records, { get, find, swap }))
    return commands
  }

  async function claimOne(stage?: MailStage): Promise<MailJob> {
    const [job] = await claim(stage)
    return job ?? expect.fail('there is no job')
  }

  return {
    parts,
    events,
    mails,
    after,
    move,
    claim,
    claimOne,
    commandsOf,
    /** An account like Ann's, or Ann's own as it is from now on. */
    add: (changes: Partial<typeof ANN>) =>
      users.add({ ...ANN, username: changes.id ?? ANN.id, ...changes }),
    ask: (changes: Partial<NewMailJob> = {}) =>
      store.outbox.add(
        sampleMailJob({ notBefore: after(0), expiresAt: after(HOUR_MS), ...changes }),
      ),
    /** Takes the one job that is due, and looks its account up. */
    hold: async () =>
      (await resolveJob(parts, await claimOne())) ?? expect.fail('nothing is to be sent'),
    /** Takes all jobs that are due, and sends what may leave; answers how many mails there are. */
    async work(): Promise<number> {
      for (let jobs = await claim(); jobs.length > 0; jobs = await claim())
        for (const job of jobs) {
          const held = await resolveJob(parts, job)
          if (held) await deliverMail(parts, held, goesOn())
        }
      return mails.length
    },
    hasLink: (user: typeof ANN) => hasUsableLink(parts, store.resetTokens, { user }),
    /** Before each connection, something happens. */
    delayed(happens: () => unknown, isFlowing: boolean): MailParts {
      const { sender } = parts
      const withSlot: typeof sender.withSlot = (stop, work) =>
        sender.withSlot(stop, ({ open, send }) =>
          work({
            isFlowing,
            send,
            async open() {
              await happens()
              return open()
            },
          }),
        )
      return { ...parts, sender: { ...sender, withSlot } }
    },
  }
}

describe('A mail whose worker was held up until its hold on it was over', () => {
  for (const isFlowing of [false, true]) {
    it(`is not sent by it: whoever takes it next sends it (mails ${isFlowing ? 'flow' : 'do not flow'})`, async () => {
      const { parts, mails, ask, hold, claimOne, move, after, delayed } = await outboxByHand()
      await ask()
      const slow = delayed(() => move(SEND_LEASE_MS), isFlowing)
      await deliverMail(slow, await hold(), goesOn())
      expect(mails).to.deep.equal([])
      const [letter] = await parts.store.resetTokens.ofUser(ANN.id, 10)
      expect(letter?.expiresAt).to.satisfy((at: Date) => at <= after(0))

      await deliverMail(parts, await claimOne('send'), goesOn())
      expect(mails.map(({ to }) => to)).to.deep.equal([ANN.email])
      const token = tokenOf(/https:\S+/.exec(mails[0]?.text ?? '')?.[0] ?? '')
      const sent = await parts.store.resetTokens.find(sha256(token))
      expect(sent).to.include({ userId: ANN.id })
      expect(sent && endOf(sent, after(0))).to.equal(undefined)
      expect(await parts.store.outbox.list({ limit: 10 }, after(0))).to.deep.equal([])
    })
  }

  it('is sent once, also where the hold ends while it waits for a connection, and mails flow', async () => {
    const { parts, mails, ask, claim, hold, move, delayed } = await outboxByHand()
    let isFirst = true
    const slow = delayed(async () => {
      // The connection gets free 200 ms after the look; the hold ended 100 ms after it, and another worker took the job.
      move(200)
      if (!isFirst) return
      isFirst = false
      const [again] = await claim('send')
      if (again) await deliverMail(parts, again, goesOn())
    }, true)
    await ask()
    const held = await hold()
    move(SEND_LEASE_MS - 100)
    await deliverMail(slow, held, goesOn())
    expect(mails).to.have.length(1)
  })
})

describe('Accounts that are slow to find', () => {
  it('are looked up 50 at once, each once, and hold up no mail that was looked up before', async () => {
    const { parts, mails, add, ask, claimOne, after } = await outboxByHand()
    const { users, store } = parts
    await ask()
    const found = (await resolveJob(parts, await claimOne())) ?? expect.fail('it is to be sent')
    await store.outbox.release(found, found.notBefore)
    const slow = Array.from({ length: 120 }, (_, number) => `slow-${number}`)
    for (const id of slow) {
      add({ id, email: `${id}@example.com` })
      await ask({ id, accountId: id, identifier: undefined, notBefore: after(-1) })
    }
    const waiting: (() => void)[] = []
    const asked: string[] = []
    const [atOnce, sent] = [new Set<number>(), () => mails.map(({ to }) => to)]
    const queue = createMailQueue({
      ...parts,
      clock: { ...parts.clock, sleep: systemClock.sleep },
      users: {
        ...users,
        async findById(id) {
          asked.push(id)
          if (slow.includes(id)) await new Promise<void>((goOn) => waiting.push(goOn))
          return users.findById(id)
        },
      },
    })
    queue.start()
    for (let done = 0; done < slow.length;) {
      const ready = Math.min(50, slow.length - done)
      await eventually('the next accounts are asked for', () => waiting.length >= ready)
      if (done === 0)
        await eventually('the mail before them leaves', () => sent().includes(ANN.email))
      atOnce.add(waiting.length)
      done += waiting.length
      for (const goOn of waiting.splice(0)) goOn()
    }
    await eventually('all mails leave', () => mails.length === slow.length + 1)
    await queue.stop(1_000)
    expect(Math.max(...atOnce)).to.equal(50)
    expect(asked.filter((id) => slow.includes(id)).toSorted()).to.deep.equal(slow.toSorted())
  })
})

describe('A mail whose link was voided', () => {
  /** As "This wasn't me" does. */
  const voidAll = ({ store }: MailParts) => voidEverything(store, ANN.id)

  async function expectMails(count: number, work: Awaited<ReturnType<typeof outboxByHand>>) {
    const { parts, mails, hasLink } = work
    expect(mails).to.have.length(count)
    const [token] = await parts.store.resetTokens.ofUser(ANN.id, 10)
    expect(token?.userId).to.equal(ANN.id)
    expect(await hasLink(ANN)).to.equal(false)
  }

  it('before the link was made is not sent, and the link is dead', async () => {
    const outbox = await outboxByHand()
    const { parts, ask, hold } = outbox
    await ask()
    const identify: MailParts['clients']['identify'] = (parameters) =>
      voidAll(parts).then(() => parts.clients.identify(parameters))
    const late = { ...parts, clients: { ...parts.clients, identify } }
    await deliverMail(late, await hold(), goesOn())
    await expectMails(0, outbox)
  })

  for (const [ms, count] of [
    [1_000, 0],
    [999, 1],
  ] as const) {
    it(`${ms} ms before it leaves is ${count === 0 ? 'not ' : ''}sent, and the link is dead`, async () => {
      const outbox = await outboxByHand()
      const { parts, ask, hold, move, delayed } = outbox
      await ask()
      const slow = delayed(() => voidAll(parts).then(() => move(ms)), true)
      await deliverMail(slow, await hold(), goesOn())
      await expectMails(count, outbox)
    })
  }
})

describe('What mails ask of the store', () => {
  /** All that becomes of so many requests at once, of as many accounts. */
  async function commandsOf(count: number): Promise<string[]> {
    const settings = { mails_per_minute: '0' }
    const { parts, mails, add, ask, claim, commandsOf: told } = await outboxByHand(settings)
    const ids = Array.from({ length: count }, (_, n) => `user-${n}`)
    for (const id of ids) add({ id, email: `${id}@example.com` })
    for (const identifier of ids) await ask({ identifier })
    const commands = await told(async () => {
      const sending = (await claim()).map(async (job) => {
        const held = await resolveJob(parts, job)
        if (held) await deliverMail(parts, held, goesOn())
      })
      await Promise.all(sending)
    })
    expect(mails).to.have.length(count)
    return commands
  }

  const commandsOfWave = (count: number) => [
    'find mail_outbox',
    `swap ${count} mail_outbox`,
    `swap ${count} rate_limits`,
    `swap ${count} mail_outbox`,
    'find mail_outbox',
    'find password_reset_tokens',
    'find password_reset_tokens',
    `swap ${count} password_reset_tokens`,
    `get ${count} mail_outbox`,
    `swap ${count} not_me_tokens`,
    `swap ${count} mail_outbox`,
  ]

  for (const count of [1, 20]) {
    it(`is ${commandsOfWave(count).length} commands for ${count} at once, besides accounts and events`, async () => {
      expect(await commandsOf(count)).to.deep.equal(commandsOfWave(count))
    })
  }
})

describe('A mail that the server never takes', () => {
  /** How often it is tried in an hour in which each attempt fails like this after 20 seconds. */
  async function tries(code: string, step: string) {
    const outbox = await outboxByHand()
    const { parts, mails, ask, hold, claim, move } = outbox
    const { sender } = parts
    async function send(mail: OutgoingMail): Promise<never> {
      mails.push(mail)
      move(20_000)
      throw new AccountFlowsError('ERR_MAIL_FAILED', code, { fault: { code, step } })
    }
    const withSlot: typeof sender.withSlot = (stop, work) =>
      sender.withSlot(stop, (slot) => work({ ...slot, send }))
    const failing = { ...parts, sender: { ...sender, withSlot } }
    await ask()
    await deliverMail(failing, await hold(), goesOn())
    for (let seconds = 0; seconds < 3_600; seconds += 10) {
      for (const job of await claim('send')) await deliverMail(failing, job, goesOn())
      move(10_000)
    }
    return outbox
  }

  for (const [how, code, step] of [
    ['by SMTP', 'SOCKET_TIMEOUT', HANDING_OVER],
    ['by a transport', OUT_OF_TIME, 'transport'],
  ] as const) {
    it(`and never refuses, gets few copies, and the newest link stays good (${how})`, async () => {
      const { parts, mails, after, hasLink } = await tries(code, step)
      expect(mails.length).to.be.within(3, 12)
      const [letter] = await parts.store.outbox.list({ state: 'dead', limit: 2 }, after(0))
      expect(letter).to.include({ accountId: ANN.id, reason: 'ERR_MAIL_FAILED' })
      expect(await hasLink(ANN)).to.equal(true)
    })
  }

  it('is tried each minute while it is refused for now', async () => {
    expect((await tries('451 4.7.1', HANDING_OVER)).mails.length).to.be.above(40)
  })
})

describe('A mail that left while the store is away', () => {
  for (const [how, ms] of [
    ['for a moment', 0],
    ['for longer than a worker holds the mail', SEND_LEASE_MS],
  ] as const) {
    it(`${how} is recorded once, and its job is removed later`, async () => {
      const { parts, events, mails, ask, hold, move } = await outboxByHand()
      const { outbox } = parts.store
      const { remove } = outbox
      let failures = 3
      outbox.remove = async (job) => {
        if (failures === 0) return remove(job)
        failures -= 1
        move(ms)
        throw new AccountFlowsError('ERR_STORE_UNAVAILABLE', 'the store is away')
      }
      await ask()
      await deliverMail(parts, await hold(), goesOn())
      expect([mails.length, failures]).to.deep.equal([1, 0])
      expect(events.filter(({ type }) => type === 'password_reset_mail_sent')).to.have.length(1)
      expect(await outbox.list({ limit: 10 }, parts.clock.now())).to.deep.equal([])
    })
  }
})

describe('A request within every limit', () => {
  it('gets its mail: a worker that lost the job takes no spare from the one that has it', async () => {
    const { parts, mails, events, ask, claimOne, move } = await outboxByHand({
      resend_cooldown: '60s',
    })
    await ask()
    const { store } = parts
    // Its first worker counts it, and then the database is away.
    const resolve = () => Promise.reject(new Error('away'))
    const away = { ...store, outbox: { ...store.outbox, resolve } }
    await resolveJob({ ...parts, store: away }, await claimOne()).catch(() => {})
    move(11_000)
    // The second one is held up for longer than its lease, before it looks at the spare; nobody died.
    const second = await claimOne()
    move(11_000)
    const third = await claimOne()
    expect(await resolveJob(parts, second)).to.equal(undefined)
    const held = await resolveJob(parts, third)
    if (held) await deliverMail(parts, held, goesOn())
    expect(events.map(({ reason }) => reason)).to.not.include('throttled')
    expect(mails.map(({ to }) => to)).to.deep.equal([ANN.email])
  })

  it('is not judged again where its worker dies after it looked the account up: one of them leaves', async () => {
    const { parts, events, ask, claim, after } = await outboxByHand({
      mails_per_account_per_hour: String(CAP),
    })
    const { resetTokens } = parts.store
    const [requestedAt, later] = [new Date(0), after(120_000)]
    const earlier = sampleResetToken({ userId: ANN.id, requestedAt, expiresAt: later })
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
    const leaving = outcomes.filter((outcome) => outcome !== 'superseded')
    expect(leaving).to.deep.equal([{ user: ANN, email: ANN.email }])
    expect(await endIn(resetTokens, earlier, 0)).to.equal('invalidated')
    const requested = events.filter(({ type }) => type === 'password_reset_requested')
    expect(requested.map(({ reason }) => reason)).to.deep.equal(ready.map(() => undefined))
  })
})

describe('The end of a cooldown, which the page counted from a moment before', () => {
  for (const [what, cooldownMs, msToEnd] of [
    ['its last second', 60_000, 1_000],
    ['the last half of a shorter one', 1_000, 500],
  ] as const) {
    it(`is over in ${what}, and not before`, async () => {
      /** Whether a second request gets no mail, so many milliseconds before the end, while the first one is under way. */
      async function refuses(ms: number): Promise<boolean> {
        const { parts, events, ask, claimOne, hold, move } = await outboxByHand({
          resend_cooldown: `${cooldownMs / 1_000}s`,
          mails_per_account_per_hour: '0',
        })
        await ask()
        await hold()
        move(cooldownMs - ms)
        await ask()
        const isRefused = (await resolveJob(parts, await claimOne())) === undefined
        expect(events.at(-1)?.reason).to.equal(isRefused ? 'throttled' : undefined)
        return isRefused
      }
      expect(await refuses(msToEnd + 1)).to.equal(true)
      expect(await refuses(msToEnd)).to.equal(false)
      expect(await refuses(0)).to.equal(false)
    })
  }
})

describe('An account that a stranger asks links for all the time', () => {
  for (const minutes of [5, 60]) {
    it(`has one that works all the time, and gets few (links live ${minutes} minutes)`, async () => {
      const { hasLink, mails, ask, work, move } = await outboxByHand({
        mails_per_account_per_hour: String(CAP),
        password_reset_expiration: `${minutes}m`,
      })
      for (let minute = 0; minute < 120; minute += 1) {
        for (let count = 0; count < 3; count += 1) {
          await ask()
          await work()
        }
        move(59_000)
        expect(await hasLink(ANN)).to.equal(true)
        move(1_000)
      }
      expect(mails.length).to.be.within(1, 2 * (CAP + 60 / minutes))
    })
  }
})

describe('Notices that a password was changed', () => {
  async function notices() {
    const outbox = await outboxByHand({ mails_per_account_per_hour: '1000' })
    const { parts, after, move, work } = outbox
    let changes = 0
    async function request(
      accountId: string,
      email: string,
      isUnverified?: boolean,
      id = `change-${(changes += 1)}`,
    ): Promise<void> {
      move(1)
      const about = { id, accountId, isUnverified, parameters: {} }
      const requester = { isAdmin: false, address: '192.0.2.1', userAgent: '' }
      await requestPasswordNotice(
        { ...parts, mailQueue: parts.store.outbox },
        { ...about, sendTo: email, requester },
      )
    }
    return {
      ...outbox,
      request,
      /** Answers how many mails there are by then. */
      change: (...of: Parameters<typeof request>): Promise<number> => request(...of).then(work),
      waiting: async () =>
        (await parts.store.outbox.list({ state: 'waiting', limit: 50 }, after(0))).map(
          ({ id, reason }) => [id, reason],
        ),
    }
  }
  const TAGS = ['+1', '+2', '+3']
  const claim = (tag: string, email = `ann${tag}@example.com`) => {
    return { id: `mallory${tag}`, email, emailVerified: false }
  }

  it('are 5 an hour for an account with a verified address, and the last one always leaves (RATE-01)', async () => {
    const { change, move, work, waiting, events } = await notices()
    const counts: number[] = []
    for (let round = 0; round < 40; round += 1) counts.push(await change('ann', ANN.email))
    expect(counts.slice(0, 6)).to.deep.equal([1, 2, 3, 4, 5, 5])
    expect(counts.at(-1)).to.equal(5)
    expect(await waiting()).to.deep.equal([['changed:change-40', 'throttled']])
    move(HOUR_MS - 40)
    expect(await work()).to.equal(5)
    move(40)
    expect(await work()).to.equal(6)
    expect(events.at(-1)).to.include({ id: 'mail_sent:changed:change-40' })
    expect(await waiting()).to.deep.equal([])
    expect(await change('ann', ANN.email)).to.equal(7)
  })

  it('are one a day for all accounts that did not verify the mailbox, and use up nothing of others (RATE-01)', async () => {
    const { add, change, move, work, mails } = await notices()
    for (const tag of ['', ...TAGS]) {
      const { id, email } = claim(tag, `Ann${tag}@example.com`)
      add(claim(tag, email))
      for (let round = 0; round < 3; round += 1) await change(id, email)
    }
    expect(mails).to.have.length(1)
    expect(await change('ann', ANN.email)).to.equal(2)
    move(DAY_MS - 12)
    expect(await work()).to.equal(3)
    move(DAY_MS)
    expect(await work()).to.equal(3)
  })

  it('are one a day also of accounts that leave the mailbox by then, and go to no other one', async () => {
    const { add, change, move, work, mails } = await notices()
    for (const account of TAGS.map((tag) => claim(tag))) {
      add(account)
      await change(account.id, account.email, true)
    }
    for (const tag of TAGS) add(claim(tag, 'thief@example.com'))
    move(DAY_MS - 2)
    expect(await work()).to.equal(2)
    expect(mails.map(({ to }) => to)).not.to.include('thief@example.com')
  })

  it('are late, and not lost, where a worker dies after it counted one', async () => {
    const { add, request, parts, claimOne, move, work, waiting } = await notices()
    const { id, email } = claim('+1')
    add(claim('+1'))
    await request(id, email)
    const resolve = () => Promise.reject(new Error('the process died'))
    const outbox = { ...parts.store.outbox, resolve }
    const died = { ...parts, store: { ...parts.store, outbox } }
    const outcome = await resolveJob(died, await claimOne()).catch(String)
    expect(outcome).to.equal('Error: the process died')
    move(10_000)
    expect(await work()).to.equal(0)
    expect(await waiting()).to.deep.equal([['changed:change-1', 'throttled']])
    move(DAY_MS)
    expect(await work()).to.equal(1)
  })

  it('leave once they are asked for again, though a later one to the same address is a dead letter', async () => {
    const { request, parts, claim: take, after, move, work, mails } = await notices()
    for (const _time of [1, 2]) await request('ann', ANN.email)
    for (const job of await take()) {
      await parts.store.outbox.resolve(job, 'ann', after(HOUR_MS))
      await parts.store.outbox.giveUp(job, after(0), 'ERR_MAIL_REFUSED')
    }
    const letters = await parts.store.outbox.list({ state: 'dead', limit: 3 }, after(0))
    const [later, first] = letters
    move(HOUR_MS)
    expect(letters.map(({ id }) => id)).to.deep.equal(['changed:change-2', 'changed:change-1'])
    for (const letter of [first, later]) {
      expect(letter && (await retryMail(parts, letter))).to.equal('revived')
      await work()
    }
    expect(mails.map(({ to }) => to)).to.deep.equal([ANN.email, ANN.email])
  })

  it('are late, and not lost, where two that were dead letters are for one mailbox', async () => {
    const { add, request, parts, claim: take, after, move, work } = await notices()
    for (const tag of ['+1', '+2']) {
      add(claim(tag, 'ann+1@example.com'))
      await request(claim(tag).id, 'ann+1@example.com')
    }
    for (const job of await take()) await parts.store.outbox.giveUp(job, after(0), 'expired')
    expect((await retryAllDead(parts)).changed).to.equal(2)
    expect(await work()).to.equal(1)
    move(DAY_MS)
    expect(await work()).to.equal(2)
  })

  it('are recorded as throttled where no time is left for them to wait', async () => {
    const { add, request, move, work, waiting, events } = await notices()
    const { id, email } = claim('+1')
    add(claim('+1'))
    for (const _time of [1, 2]) await request(id, email)
    move(2 * HOUR_MS)
    expect(await work()).to.equal(1)
    expect(await waiting()).to.deep.equal([])
    const failed = events.filter(({ type }) => type === 'password_reset_mail_failed')
    expect(failed.map((event) => Reflect.get(event, 'reason'))).to.deep.equal(['throttled'])
  })

  it('say when it was, and come before what was asked for since, also once they were dead letters', async () => {
    const { parts, mails, ask, request, claimOne, after, move, work } = await notices()
    const { outbox, notMeTokens, resetTokens } = parts.store
    const changedAt = after(1)
    await request('ann', ANN.email)
    await outbox.giveUp(await claimOne(), after(0), 'ERR_MAIL_REFUSED')
    move(2 * DAY_MS)
    await ask()
    expect(await work()).to.equal(1)
    move(HOUR_MS)
    const [letter] = await outbox.list({ state: 'dead', limit: 2 }, after(0))
    expect(letter && (await retryMail(parts, letter))).to.equal('revived')
    expect(await work()).to.equal(2)
    const text = mails[1]?.text ?? ''
    expect(text).to.include(timeText(changedAt, 'en'))
    const notMe = await notMeTokens.find(sha256(/not-me\?token=(\S+)/.exec(text)?.[1] ?? ''))
    const [reset] = await resetTokens.ofUser('ann', 1)
    expect(notMe && reset && isLater(reset, notMe)).to.equal(true)
  })

  it('leave once, also where one is asked for again after that', async () => {
    const { change } = await notices()
    await change('ann', ANN.email)
    expect(await change('ann', ANN.email, undefined, 'change-1')).to.equal(1)
  })

  it('reach a mailbox that a thief had the account leave', async () => {
    const { add, change } = await notices()
    add(claim('+1'))
    expect(await change('mallory+1', 'Ann+1@example.com')).to.equal(1)
    add({ email: 'thief@example.com', emailVerified: false })
    expect(await change('ann', ANN.email)).to.equal(2)
  })

  it('that an address was changed reach the owner, whatever a thief changes before and after that (RATE-29)', async () => {
    const { add, change, move, work, parts, mails } = await notices()
    const kind = 'email_changed'
    async function leaves(sendTo: string) {
      move(1)
      const requester = { address: undefined, userAgent: undefined }
      const notice = { id: `left-${sendTo}`, accountId: 'ann', sendTo, parameters: {}, requester }
      await requestNotice(
        { ...parts, mailQueue: parts.store.outbox },
        { ...notice, kind, isUnverified: false },
      )
      return work()
    }
    add({ email: 'last@thief.example' })
    for (let round = 1; round <= 5; round += 1) {
      await change('ann', ANN.email)
      expect(await leaves(`${round}@thief.example`)).to.equal(2 * round)
    }
    const left = [ANN.email, '6@thief.example', '7@thief.example']
    for (const sendTo of left) expect(await leaves(sendTo)).to.equal(10)
    move(HOUR_MS)
    expect(await work()).to.equal(13)
    const told = mails.slice(10).map((mail) => [mail.kind, mail.to])
    expect(told).to.have.deep.members(left.map((address) => [kind, address]))
  })
})

describe('Verification mails to one mailbox', () => {
  /** Accounts that only claim one mailbox; `flood` asks for each of them, all over a day. */
  async function claimed(accounts: number, settings: Record<string, string> = {}) {
    const outbox = await outboxByHand({ mails_per_account_per_hour: '10', ...settings })
    const { add, ask, move, work, mails } = outbox
    const ids = Array.from({ length: accounts }, (_, index) => `mallory-${index}`)
    for (const id of ids) add({ id, email: `ann+${id}@example.com`, emailVerified: false })
    async function wish(identifier: string, more: Partial<NewMailJob> = {}) {
      move(1)
      await ask({ kind: 'email_verification', identifier, ...more })
      return work()
    }
    async function flood(times = 6, rounds = 3) {
      for (let time = 1; time <= times; time += 1) {
        for (let round = 0; round < rounds; round += 1)
          for (const id of ids) {
            await wish(id)
            await wish(id, { pendingLoginId: 'a login', accountId: id })
          }
        if (time < times) move(4 * HOUR_MS)
      }
      return mails.length
    }
    return { ...outbox, wish, flood }
  }

  for (const settings of [{}, { email_verification_expiration: '5m' }])
    it(`are 30 a day, and a first one of each account, also where an hour has no limit (RATE-13), ${JSON.stringify(settings)}`, async () => {
      const { flood, move } = await claimed(5, settings)
      const most = 30 + 2 * 5
      expect(await flood()).to.be.within(30, most)
      move(4 * HOUR_MS)
      expect(await flood()).to.be.within(60, 2 * most)
      const unlimited = await claimed(1, { ...settings, mails_per_account_per_hour: '0' })
      expect(await unlimited.flood(1, 50)).to.be.within(30, 32)
    })

  it('are half for logins: what strangers ask for by name leaves each of these its mail', async () => {
    const { wish } = await claimed(1, { mails_per_account_per_hour: '0' })
    for (let time = 0; time < 40; time += 1) await wish('mallory-0')
    const before = await wish('mallory-0')
    expect(before).to.equal(15)
    const login = { accountId: 'mallory-0', identifier: undefined }
    for (let time = 1; time <= 15; time += 1)
      expect(await wish('', { ...login, pendingLoginId: `login ${time}` })).to.equal(before + time)
  })
})

describe('Strangers who know a name, or claim the same mailbox,', () => {
  it('do not learn by their own mails whether another spelling of their address has an account (ENU-06)', async () => {
    const mailsOf = async (isThere: boolean) => {
      const settings = { mails_per_account_per_hour: String(CAP) }
      const { add, ask, mails, move, work } = await outboxByHand(settings)
      add({ id: 'eve', email: 'j.doe@example.com' })
      if (isThere) add({ id: 'jane', email: 'jdoe@example.com' })
      await ask({ identifier: 'eve' })
      await work()
      for (let time = 0; time < CAP; time += 1) {
        move(1)
        await ask({ identifier: 'jdoe@example.com' })
      }
      await work()
      move(1)
      await ask({ identifier: 'eve' })
      await work()
      return mails.filter(({ to }) => to === 'j.doe@example.com').length
    }
    expect([await mailsOf(true), await mailsOf(false)]).to.deep.equal([2, 2])
  })

  it('lock no account out of its mails: without a working link it gets one, and so does its login (RATE-08)', async () => {
    const outbox = await outboxByHand({ mails_per_account_per_hour: String(CAP) })
    const { add, ask, hasLink, mails, move, work } = outbox
    async function count(wanted: Partial<NewMailJob>) {
      const before = mails.length
      move(1)
      await ask(wanted)
      return (await work()) - before
    }
    const kind = 'email_verification'
    const squatters = Array.from({ length: 12 }, (_, index) => `squatter-${index}`)
    for (const [index, id] of squatters.entries())
      add({ id, email: `ann+${index}@example.com`, emailVerified: false })
    async function flood() {
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
    add({ id: 'newbie', emailVerified: false })

    await flood()
    expect(await hasLink(ANN)).to.equal(true)
    const newbie = { kind, identifier: undefined, accountId: 'newbie' } as const
    expect(await count({ ...newbie, pendingLoginId: 'a login' })).to.equal(1)
    expect(await count({ ...newbie, pendingLoginId: 'another login' })).to.equal(0)
    // Its link was used: the password is another one.
    const changed = { ...ANN, passwordHash: 'another hash' }
    add(changed)
    await flood()
    expect(await hasLink(changed)).to.equal(true)
    move(DAY_MS)
    await flood()
    expect(await count({ ...newbie, pendingLoginId: 'of another day' })).to.equal(1)
  })
})
