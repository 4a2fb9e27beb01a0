import { expect } from 'chai'
import type { MailKind } from '../../src/contract/index.ts'
import type { MailJobStatus } from '../../src/store/index.ts'
import { retryAllDead } from '../../src/mail/retry.ts'
import type { AdminClient } from '../../src/admin/client.ts'
import { systemClock } from '../../src/clock.ts'
import { codeOf, expectAudited, outcomeOf, suiteAdmin } from '../support/admin.ts'
import { eventually } from '../support/eventually.ts'
import type { Person } from '../support/person.ts'
import { suiteHarness } from '../support/harness.ts'
import { keptInMemory } from '../support/kept.ts'

const NEW = 'a brand new password'

describe('The admin API about the outbox (5)', () => {
  const h = suiteHarness()
  const admin = suiteAdmin(h)

  beforeEach(async () => {
    h.mail.answers.clear()
    h.mail.speak()
    await admin.purgeMails({ all_dead: true })
  })

  /** A reset mail that could not be sent. */
  async function deadLetter(user: Person): Promise<string> {
    h.mail.answers.set(user.email ?? '', 'refuse')
    const { mail_id } = await admin.sendReset({ id: user.id })
    await outcomeOf(h, mail_id, 'dead')
    h.mail.answers.delete(user.email ?? '')
    return mail_id
  }

  /** A reset mail that the mail server put off, and that no worker holds. */
  async function waitingMail(user: Person): Promise<string> {
    h.mail.answers.set(user.email ?? '', 'defer')
    const { mail_id } = await admin.sendReset({ id: user.id })
    await eventually('the mail was put off', async () => {
      const [mail] = (await admin.listOutbox({ account_id: user.id })).mails
      return mail?.reason !== undefined && !mail.is_held
    })
    return mail_id
  }

  const idsOf = async (query: Parameters<AdminClient['listOutbox']>[0]) =>
    (await admin.listOutbox(query)).mails.map(({ id }) => id)

  async function expectLinkMailed(user: Person) {
    const { link } = await user.mail(1)
    expect((await h.reset(link, NEW)).mode).to.equal('done')
    expect(await user.hasPassword(NEW)).to.equal(true)
  }

  it('lists mails by state and account, newest request first, at most so many', async () => {
    const [one, other] = [await h.addVerified(), await h.addVerified()]
    const dead = await deadLetter(one)
    const waiting = await waitingMail(other)
    const deadToo = await deadLetter(one)
    expect(await idsOf({})).to.deep.equal([deadToo, waiting, dead])
    expect(await idsOf({ state: 'dead' })).to.deep.equal([deadToo, dead])
    expect(await idsOf({ state: 'waiting' })).to.deep.equal([waiting])
    expect(await idsOf({ account_id: one.id })).to.deep.equal([deadToo, dead])
    expect(await idsOf({ account_id: other.id, state: 'dead' })).to.deep.equal([])
    expect(await idsOf({ account_id: 'nobody' })).to.deep.equal([])
    expect(await idsOf({ limit: 2 })).to.deep.equal([deadToo, waiting])
    const [letter, job] = (await admin.listOutbox()).mails
    expect(letter).to.include({ state: 'dead', reason: 'ERR_MAIL_REFUSED', is_held: false })
    expect(letter).to.not.have.property('next_attempt_at')
    expect(job).to.include({ state: 'waiting', kind: 'password_reset', account_id: other.id })
    expect(job).to.include.keys('requested_at', 'next_attempt_at', 'expires_at', 'attempts')
    await admin.purgeMails({ id: waiting })
  })

  it('retries all dead letters, page by page where they are more than one request is in time for', async () => {
    const users = [await h.addVerified(), await h.addVerified(), await h.addVerified()]
    for (const user of users) await deadLetter(user)
    const [newest, , oldest] = (await admin.listOutbox()).mails
    const before = (time: string | undefined, ms: number) =>
      new Date(Date.parse(time ?? '') + ms).toISOString()
    const all = { all_dead: true }
    const none = await admin.retryMails({ ...all, before: before(oldest?.requested_at, 0) })
    expect(none).to.deep.equal({ changed: 0 })
    const page = { ...all, before: before(newest?.requested_at, 1) }
    expect(await admin.retryMails(page)).to.deep.equal({ changed: 3 })
    for (const user of users) await user.mail(1)
    const { details } = expectAudited(h, 'outbox_retry')
    expect(details).to.include({ mail_id: 'all dead letters' })
    expect(await admin.retryMails(all)).to.deep.equal({ changed: 0 })
  })

  it('retries none that the account asked again after: its newer link stays alive (3.1)', async () => {
    const user = await h.addVerified()
    const old = await deadLetter(user)
    const { mail_id: newer } = await admin.sendReset({ id: user.id })
    await outcomeOf(h, newer, 'sent')
    expect(await codeOf(admin.retryMails({ id: old }))).to.deep.equal([409, 'superseded'])
    expect(await admin.retryMails({ all_dead: true })).to.deep.equal({ changed: 0 })
    expect((await admin.mailOutcome({ mail_id: old })).state).to.equal('dead')
    await expectLinkMailed(user)
  })

  it('retries none of which nobody knows for whom it was: 409', async () => {
    const at = new Date()
    const [soon, later] = [new Date(Number(at) + 60_000), new Date(Number(at) + 120_000)]
    await h.store.outbox.add({
      id: 'nobodys',
      kind: 'password_reset',
      identifier: 'typed',
      accountId: undefined,
      pendingLoginId: undefined,
      parameters: {},
      requester: { address: undefined, userAgent: undefined },
      notBefore: soon,
      expiresAt: soon,
    })
    const [claimed] = await h.store.outbox.claim('resolve', 1, soon, later)
    expect(claimed?.id).to.equal('nobodys')
    if (claimed) expect(await h.store.outbox.giveUp(claimed, at, 'expired')).to.equal(true)
    expect(await codeOf(admin.retryMails({ id: 'nobodys' }))).to.deep.equal([409, 'no_account'])
    expect(await idsOf({ state: 'dead' })).to.deep.equal(['nobodys'])
    expect(await admin.retryMails({ all_dead: true })).to.deep.equal({ changed: 0 })
    expect(await admin.purgeMails({ id: 'nobodys' })).to.deep.equal({ changed: 1 })
  })

  it('removes a dead letter, and it never leaves; the other stays', async () => {
    const [one, other] = [await h.addVerified(), await h.addVerified()]
    const [id, kept] = [await deadLetter(one), await deadLetter(other)]
    expect(await admin.purgeMails({ id })).to.deep.equal({ changed: 1 })
    expect(await idsOf({})).to.deep.equal([kept])
    expect((await outcomeOf(h, id, 'ended')).reason).to.equal('ERR_MAIL_REFUSED')
    expect(expectAudited(h, 'outbox_purge').details).to.include({ mail_id: id })
    expect(await codeOf(admin.retryMails({ id }))).to.deep.equal([404, 'unknown_mail'])
    await admin.retryMails({ id: kept })
    await other.mail(1)
  })

  it('removes all dead letters, and no mail that waits, until that is named: it never leaves', async () => {
    const [one, other] = [await h.addVerified(), await h.addVerified()]
    for (const user of [one, one]) await deadLetter(user)
    const id = await waitingMail(other)
    expect(await admin.purgeMails({ all_dead: true })).to.deep.equal({ changed: 2 })
    expectAudited(h, 'outbox_purge')
    expect(await idsOf({})).to.deep.equal([id])
    expect(await admin.purgeMails({ id })).to.deep.equal({ changed: 1 })
    expect(await idsOf({})).to.deep.equal([])
    h.mail.answers.clear()
    const link = await other.forgets()
    expect(other.mailCount()).to.equal(1)
    expect((await h.reset(link, NEW)).mode).to.equal('done')
  })

  it('leaves alone what a worker holds: 409, and the mail arrives', async () => {
    const user = await h.addVerified()
    h.mail.fallSilent()
    const { mail_id: id } = await admin.sendReset({ id: user.id })
    await eventually('a worker is about to send the mail', async () => {
      const [mail] = (await admin.listOutbox({ account_id: user.id })).mails
      return mail?.is_held && h.mail.mostOpen() > 0
    })
    expect(await codeOf(admin.retryMails({ id }))).to.deep.equal([409, 'held'])
    expect(await codeOf(admin.purgeMails({ id }))).to.deep.equal([409, 'held'])
    expect(await admin.purgeMails({ all_dead: true })).to.deep.equal({ changed: 0 })
    expect(await idsOf({ state: 'waiting' })).to.deep.equal([id])
    h.mail.speak()
    await expectLinkMailed(user)
  })
})

describe('retryAllDead()', () => {
  const start = Date.UTC(2026, 0, 1)

  /** Dead letters of these accounts, the first the newest, as an outbox tells of them. */
  function retryOf(accounts: string[], kind: MailKind = 'email_verification') {
    const revived: string[] = []
    const letters = accounts.map((accountId, index): MailJobStatus => ({
      id: `mail-${index}`,
      kind,
      state: 'dead',
      accountId,
      requestedAt: new Date(start - index),
      nextAttemptAt: undefined,
      expiresAt: new Date(start),
      attempts: 1,
      reason: 'ERR_MAIL_REFUSED',
      isHeld: false,
    }))
    const store = keptInMemory()
    const list: typeof store.outbox.list = async ({ limit, requestedBefore: before = Infinity }) =>
      letters
        .filter(({ id, requestedAt }) => !revived.includes(id) && requestedAt < before)
        .slice(0, limit)
    async function revive(id: string) {
      revived.push(id)
      return 'revived' as const
    }
    const outbox = { ...store.outbox, list, revive }
    const clock = { ...systemClock, now: () => new Date(start) }
    const parts = { clock, store: { ...store, outbox } }
    return { revived, retry: (before?: Date) => retryAllDead(parts, before) }
  }

  it('asks again for the newest letter of each account; looks at so many at once, be they of one account, and says where to go on', async () => {
    const { retry, revived } = retryOf([...Array<string>(1_000).fill('ann'), 'bob'])
    let before: Date | undefined
    let calls = 0
    do {
      before = (await retry(before)).moreBefore
      calls += 1
    } while (before)
    expect(calls).to.equal(4)
    expect(revived).to.include.members(['mail-0', 'mail-1000']).and.to.have.length(5)
  })

  it('asks again for each notice: each may be for another mailbox', async () => {
    const { retry, revived } = retryOf(['ann', 'ann', 'bob'], 'email_changed')
    expect(await retry()).to.deep.equal({ changed: 3, moreBefore: undefined })
    expect(revived).to.deep.equal(['mail-0', 'mail-1', 'mail-2'])
  })
})
