import { expect } from 'chai'
import type { AdminClient, User } from '../../src/index.ts'
import {
  actionsOf,
  suiteAdmin,
  codeOf,
  expectAudited,
  outcomeOf,
  refusalOf,
} from '../support/admin-calls.ts'
import { eventually } from '../support/eventually.ts'
import type { MailAnswer } from '../support/mail-server.ts'
import { hasPassword } from '../support/observe.ts'
import { suiteHarness } from '../support/suite-harness.ts'

const NEW = 'a brand new password'

describe('The admin API about the outbox (5)', () => {
  const h = suiteHarness({
    mail: { answer: (recipient) => answers.get(recipient) ?? 'take' },
  })
  const admin = suiteAdmin(h)
  const answers = new Map<string, MailAnswer>()

  beforeEach(async () => {
    answers.clear()
    h.mail.speak()
    await admin.purgeMails({ all_dead: true })
  })

  let added = 0
  function addUser(): Promise<User> {
    added += 1
    return h.addUser({ username: `user${added}` })
  }

  /** A reset mail that could not be sent. */
  async function deadLetter(user: User): Promise<string> {
    answers.set(user.email ?? '', 'refuse')
    const { mail_id } = await admin.sendReset({ id: user.id })
    await outcomeOf(h, mail_id, 'dead')
    answers.delete(user.email ?? '')
    return mail_id
  }

  /** A reset mail that the mail server put off, and that no worker holds. */
  async function waitingMail(user: User): Promise<string> {
    answers.set(user.email ?? '', 'defer')
    const { mail_id } = await admin.sendReset({ id: user.id })
    await eventually('the mail was put off', async () => {
      const [mail] = (await admin.listOutbox({ account_id: user.id })).mails
      return mail?.reason !== undefined && !mail.is_held
    })
    return mail_id
  }

  const idsOf = async (query: Parameters<AdminClient['listOutbox']>[0]) =>
    (await admin.listOutbox(query)).mails.map(({ id }) => id)

  /** A mail is there a moment before its job is gone. */
  const allDelivered = () =>
    eventually('no worker has a mail', async () =>
      (await admin.listOutbox()).mails.every(({ is_held }) => !is_held),
    )

  /** Whatever is refused: the same mails as before. */
  async function unchanged(work: () => Promise<unknown>) {
    const seen = async () =>
      JSON.stringify((await admin.listOutbox()).mails.map(({ id, state }) => [id, state]))
    const before = await seen()
    await work()
    expect(await seen()).to.equal(before)
  }

  describe('lists', () => {
    it('mails by state and account, newest request first, at most so many', async () => {
      const [one, other] = [await addUser(), await addUser()]
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

    it('and refuses another state and limits out of bounds: 400', async () => {
      for (const [name, value] of [
        ['state', 'sent'],
        ['limit', '0'],
        ['limit', '1001'],
        ['limit', 'ten'],
        ['limit', ['1', '2']],
      ] as const) {
        const problem = await refusalOf(admin.listOutbox({ [name]: value }))
        expect([problem.status, problem.errors?.map(({ key }) => key)]).to.deep.equal([400, [name]])
      }
      expect(await idsOf({ limit: 1000 })).to.deep.equal([])
    })
  })

  describe('retries', () => {
    it('a dead letter: a fresh mail leaves, and its link works', async () => {
      const user = await addUser()
      const id = await deadLetter(user)
      expect(await admin.retryMails({ id })).to.deep.equal({ changed: 1 })
      const { link } = await h.mail.mailTo(user.email ?? '')
      await outcomeOf(h, id, 'sent')
      expect((await h.reset(link, NEW)).mode).to.equal('done')
      expect(await hasPassword(h, user, NEW)).to.equal(true)
      expectAudited(actionsOf(h, 'outbox_retry').at(-1), 'outbox_retry')
      expect(actionsOf(h, 'outbox_retry').at(-1)?.details).to.include({ mail_id: id })
    })

    it('all dead letters', async () => {
      const users = [await addUser(), await addUser(), await addUser()]
      for (const user of users) await deadLetter(user)
      expect(await admin.retryMails({ all_dead: true })).to.deep.equal({ changed: 3 })
      for (const user of users) await h.mail.mailTo(user.email ?? '')
      const told = { mail_id: 'all dead letters' }
      expect(actionsOf(h, 'outbox_retry').at(-1)?.details).to.include(told)
      expect(await admin.retryMails({ all_dead: true })).to.deep.equal({ changed: 0 })
    })

    it('a waiting one: it is due at once', async () => {
      const user = await addUser()
      const id = await waitingMail(user)
      answers.delete(user.email ?? '')
      expect(await admin.retryMails({ id })).to.deep.equal({ changed: 1 })
      const { link } = await h.mail.mailTo(user.email ?? '')
      expect((await h.reset(link, NEW)).mode).to.equal('done')
    })

    it('none that does not exist: 404, and what was given is not recorded', async () => {
      const link = await h.resetLink(await addUser())
      await allDelivered()
      await unchanged(async () => {
        const actions = actionsOf(h).length
        for (const id of ['no such mail', '$ne', '__proto__', link]) {
          expect(await codeOf(admin.retryMails({ id }))).to.deep.equal([404, 'unknown_mail'])
          expect(await codeOf(admin.purgeMails({ id }))).to.deep.equal([404, 'unknown_mail'])
        }
        expect(actionsOf(h)).to.have.length(actions)
      })
      expect((await h.reset(link, NEW)).mode).to.equal('done')
    })

    it('none that the account asked again after: its newer link stays alive (3.1)', async () => {
      const user = await addUser()
      const old = await deadLetter(user)
      const { mail_id: newer } = await admin.sendReset({ id: user.id })
      await outcomeOf(h, newer, 'sent')
      expect(await codeOf(admin.retryMails({ id: old }))).to.deep.equal([409, 'superseded'])
      expect(await admin.retryMails({ all_dead: true })).to.deep.equal({ changed: 0 })
      expect((await admin.mailOutcome({ mail_id: old })).state).to.equal('dead')
      await h.reset(await h.resetLink(user), NEW)
      expect(await hasPassword(h, user, NEW)).to.equal(true)
    })

    it('more than one request is answered in time for, page by page', async () => {
      const user = await addUser()
      const id = await deadLetter(user)
      const { requested_at: requestedAt = '' } = (await admin.listOutbox()).mails[0] ?? {}
      const retryBefore = (before: string) => admin.retryMails({ all_dead: true, before })
      expect(await retryBefore(requestedAt)).to.deep.equal({ changed: 0 })
      expect(await codeOf(retryBefore('yesterday'))).to.deep.equal([400, 'invalid_request'])
      const later = new Date(Date.parse(requestedAt) + 1).toISOString()
      expect(await retryBefore(later)).to.deep.equal({ changed: 1 })
      await outcomeOf(h, id, 'sent')
    })

    it('none of which nobody knows for whom it was: 409', async () => {
      const at = new Date()
      const [soon, later] = [new Date(Number(at) + 60_000), new Date(Number(at) + 120_000)]
      await h.store.outbox.add({
        id: 'nobodys',
        kind: 'password_reset',
        identifier: 'typed',
        accountId: undefined,
        pendingLoginId: undefined,
        carried: {},
        requester: { address: undefined, userAgent: undefined },
        notBefore: soon,
        expiresAt: soon,
      })
      const [claimed] = await h.store.outbox.claim('resolve', 1, soon, later)
      expect(claimed?.id).to.equal('nobodys')
      if (claimed) expect(await h.store.outbox.giveUp(claimed, at, 'expired')).to.equal(true)
      await unchanged(async () => {
        expect(await codeOf(admin.retryMails({ id: 'nobodys' }))).to.deep.equal([409, 'no_account'])
      })
      expect(await admin.retryMails({ all_dead: true })).to.deep.equal({ changed: 0 })
      expect(await admin.purgeMails({ id: 'nobodys' })).to.deep.equal({ changed: 1 })
    })
  })

  describe('removes', () => {
    it('a dead letter, and it never leaves; the other stays', async () => {
      const [one, other] = [await addUser(), await addUser()]
      const [id, kept] = [await deadLetter(one), await deadLetter(other)]
      expect(await admin.purgeMails({ id })).to.deep.equal({ changed: 1 })
      expect(await idsOf({})).to.deep.equal([kept])
      expect((await outcomeOf(h, id, 'ended')).reason).to.equal('ERR_MAIL_REFUSED')
      expect(actionsOf(h, 'outbox_purge').at(-1)?.details).to.include({ mail_id: id })
      expectAudited(actionsOf(h, 'outbox_purge').at(-1), 'outbox_purge')
      expect(await codeOf(admin.retryMails({ id }))).to.deep.equal([404, 'unknown_mail'])
      await admin.retryMails({ id: kept })
      await h.mail.mailTo(other.email ?? '')
    })

    it('a waiting one, and it never leaves', async () => {
      const user = await addUser()
      const id = await waitingMail(user)
      expect(await admin.purgeMails({ id })).to.deep.equal({ changed: 1 })
      expect(await idsOf({})).to.deep.equal([])
      answers.delete(user.email ?? '')
      const link = await h.resetLink(user)
      expect(h.mail.mails.filter(({ to }) => to.includes(user.email ?? ''))).to.have.length(1)
      expect((await h.reset(link, NEW)).mode).to.equal('done')
    })

    it('all dead letters, and no mail that waits', async () => {
      const [one, other] = [await addUser(), await addUser()]
      await deadLetter(one)
      await deadLetter(one)
      const waiting = await waitingMail(other)
      expect(await admin.purgeMails({ all_dead: true })).to.deep.equal({ changed: 2 })
      expect(await idsOf({})).to.deep.equal([waiting])
      expectAudited(actionsOf(h, 'outbox_purge').at(-1), 'outbox_purge')
      answers.clear()
      h.mail.speak()
      await admin.retryMails({ id: waiting })
      await h.mail.mailTo(other.email ?? '')
    })
  })

  it('leaves alone what a worker holds: 409, and the mail arrives', async () => {
    const user = await addUser()
    h.mail.fallSilent()
    const { mail_id: id } = await admin.sendReset({ id: user.id })
    await eventually('a worker is about to send the mail', async () => {
      const [mail] = (await admin.listOutbox({ account_id: user.id })).mails
      return mail?.is_held && h.mail.mostOpen() > 0
    })
    await unchanged(async () => {
      expect(await codeOf(admin.retryMails({ id }))).to.deep.equal([409, 'held'])
      expect(await codeOf(admin.purgeMails({ id }))).to.deep.equal([409, 'held'])
      expect(await admin.purgeMails({ all_dead: true })).to.deep.equal({ changed: 0 })
    })
    h.mail.speak()
    const { link } = await h.mail.mailTo(user.email ?? '')
    expect((await h.reset(link, NEW)).mode).to.equal('done')
  })

  it('changes nothing where both or neither of id and all_dead are given: 400', async () => {
    const id = await deadLetter(await addUser())
    const actions = actionsOf(h).length
    await unchanged(async () => {
      for (const which of [{}, { all_dead: false }, { id, all_dead: true }]) {
        for (const ask of ['retryMails', 'purgeMails'] as const) {
          expect(await codeOf(admin[ask](which))).to.deep.equal([400, 'invalid_request'])
        }
      }
    })
    await unchanged(async () => {
      const some = { all_dead: true, before: new Date().toISOString() }
      expect(await codeOf(admin.purgeMails(some))).to.deep.equal([400, 'invalid_request'])
    })
    expect(actionsOf(h)).to.have.length(actions)
    expect(await admin.purgeMails({ id, all_dead: false })).to.deep.equal({ changed: 1 })
  })
})
