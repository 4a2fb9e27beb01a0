import { expect } from 'chai'
import { deliverMail } from '../../src/outbox/deliver.ts'
import { resolveJob } from '../../src/outbox/resolve.ts'
import { endOf } from '../../src/ports/token-end.ts'
import { SEND_LEASE_MS, type SendTurn } from '../../src/outbox/send-turn.ts'
import { ANN, AT_ONCE, outboxByHand } from '../support/outbox-parts.ts'
import { sha256, tokenOf } from '../support/observe.ts'

const FLOWING: SendTurn = { ...AT_ONCE, take: (send) => send(new AbortController().signal, true) }

describe('A mail whose worker was held up until its hold on it was over', () => {
  for (const isFlowing of [false, true]) {
    it(`is not sent by it: whoever takes it next sends it (mails ${isFlowing ? 'flow' : 'do not flow'})`, async () => {
      const { parts, mails, ask, claim, move, after } = await outboxByHand()
      const turn: SendTurn = {
        ...AT_ONCE,
        take: (send) => send(new AbortController().signal, isFlowing),
      }
      const { sender } = parts
      const slow = {
        ...sender,
        async connect(...given: Parameters<typeof sender.connect>) {
          move(SEND_LEASE_MS)
          return sender.connect(...given)
        },
      }
      await ask()
      const [job] = await claim()
      const held = job && (await resolveJob(parts, job))
      if (!held) throw new TypeError('nothing is to be sent')

      await deliverMail({ ...parts, sender: slow }, held, turn)
      expect(mails).to.deep.equal([])
      const [letter] = await parts.store.resetTokens.ofUser(ANN.id, 10)
      expect(letter?.expiresAt).to.satisfy((at: Date) => at <= after(0))

      const [again] = await claim('send')
      if (!again) throw new TypeError('nobody can take it')
      await deliverMail(parts, again, turn)
      expect(mails.map(({ to }) => to)).to.deep.equal([ANN.email])
      const token = tokenOf(/https:\S+/.exec(mails[0]?.text ?? '')?.[0] ?? '')
      const sent = await parts.store.resetTokens.find(sha256(token))
      expect(sent).to.include({ userId: ANN.id })
      expect(sent && endOf(sent, after(0))).to.equal(undefined)
      expect(await parts.store.outbox.list({ limit: 10 }, after(0))).to.deep.equal([])
    })
  }
})

describe('A hold that ends while a mail waits for a connection, and mails flow', () => {
  it('is over: whoever takes the mail next sends it, and nobody twice', async () => {
    const { parts, mails, ask, claim, move } = await outboxByHand()
    const { sender } = parts
    let isFirst = true
    const slow = {
      ...sender,
      async connect(...given: Parameters<typeof sender.connect>) {
        // The connection gets free 200 ms after the look; the hold ended 100 ms after it, and another worker took the job.
        move(200)
        if (isFirst) {
          isFirst = false
          const [again] = await claim('send')
          if (again) await deliverMail(parts, again, AT_ONCE)
        }
        return sender.connect(...given)
      },
    }
    await ask()
    const [job] = await claim()
    const held = job && (await resolveJob(parts, job))
    if (!held) throw new TypeError('nothing is to be sent')
    move(SEND_LEASE_MS - 100)
    await deliverMail({ ...parts, sender: slow }, held, FLOWING)
    expect(mails).to.have.length(1)
  })
})

describe('A request within every limit, whose worker was only slow, or whose database was away for a moment', () => {
  it('gets its mail: a worker that lost the job takes no spare from the one that has it', async () => {
    const { parts, mails, events, ask, claim, after, move } = await outboxByHand({
      resend_cooldown: '60s',
    })
    await ask({ id: 'job' })
    const [first] = await claim()
    if (!first) throw new TypeError('no job')
    const { store } = parts
    // Its first worker counts it, and then the database is away.
    const away = {
      ...store,
      outbox: { ...store.outbox, resolve: () => Promise.reject(new Error('away')) },
    }
    await resolveJob({ ...parts, store: away }, first).catch(() => {})
    move(11_000)
    // The second one is held up for longer than its lease, before it looks at the spare; nobody died.
    const [second] = await claim()
    if (!second) throw new TypeError('no job')
    move(11_000)
    const [third] = await claim('resolve', after(0))
    if (!third) throw new TypeError('no job')
    expect(await resolveJob(parts, second)).to.equal(undefined)
    const held = await resolveJob(parts, third)
    if (held) await deliverMail(parts, held, AT_ONCE)
    expect(events.map(({ type, reason }) => `${type} ${reason ?? ''}`)).to.not.include(
      'password_reset_requested throttled',
    )
    expect(mails.map(({ to }) => to)).to.deep.equal([ANN.email])
  })
})
