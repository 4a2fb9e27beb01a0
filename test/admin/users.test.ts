import bcrypt from 'bcrypt'
import { expect } from 'chai'
import { memoryMailbox, type User, type UserStore } from '../../src/index.ts'
import {
  actionsOf,
  adminOf,
  suiteAdmin,
  codeOf,
  expectAudited,
  outcomeOf,
  refusalOf,
} from '../support/admin-calls.ts'
import { accountOf, addUnverified, isVerified, mailsTo, resend } from '../support/blocked-login.ts'
import { eventually } from '../support/eventually.ts'
import { ADMIN_TOKEN, PASSWORD, startHarness, type Harness } from '../support/harness.ts'
import type { MailAnswer } from '../support/mail-server.ts'
import * as ask from '../support/oauth-requests.ts'
import { eventsOf, hasPassword, sha256, tokenOf } from '../support/observe.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { moveTime } from '../support/time.ts'
import { createUserAgent } from '../support/user-agent.ts'

const NEW = 'a brand new password'
const CALLS = ['userStatus', 'sendReset', 'sendVerification', 'endSessions'] as const

describe('The admin API about users (5)', () => {
  const h = suiteHarness({
    mail: { answer: (recipient) => answers.get(recipient) ?? 'take' },
  })
  const admin = suiteAdmin(h)
  const answers = new Map<string, MailAnswer>()

  let added = 0
  function addUser(user: Partial<User> = {}): Promise<User> {
    added += 1
    return h.addUser({ username: `user${added}`, ...user })
  }

  /** Waits until a worker tries to send the mail. */
  async function isHeld(mailId: string): Promise<void> {
    await eventually(`a worker tries to send ${mailId}`, async () => {
      const { mails } = await admin.listOutbox({ state: 'waiting' })
      return mails.some(({ id, attempts, is_held }) => id === mailId && attempts > 0 && is_held)
    })
  }

  async function sentReset(user: User) {
    const count = mailsTo(h, user)
    const { mail_id } = await admin.sendReset({ id: user.id })
    const { link } = await h.mail.mailTo(user.email ?? '', count + 1)
    await outcomeOf(h, mail_id, 'sent')
    return { link, mail_id }
  }

  describe('finds one account', () => {
    it('by its username, its verified address in either ASCII case, its id, or several of these at once', async () => {
      const ann = await addUser({ username: 'ann', id: 'id-of-ann', email: 'ann@users.example' })
      for (const user of ['ann', 'ann@users.example', 'ANN@Users.Example', 'id-of-ann']) {
        expect((await admin.userStatus({ user })).id).to.equal(ann.id)
      }
      expect((await admin.userStatus({ id: 'id-of-ann' })).username).to.equal('ann')
      const user = 'dee@users.example'
      const dee = await addUser({ id: user, username: user, email: user })
      expect((await admin.userStatus({ user })).id).to.equal(dee.id)
    })

    it('and by an unverified address for its status alone; nobody by a username that is given as an id', async () => {
      const bob = await addUser({ username: 'bob', emailVerified: false })
      const actions = actionsOf(h).length
      for (const query of [{ user: bob.email ?? '' }, { id: 'bob' }, { user: 'no such user' }]) {
        if (query.user !== bob.email)
          expect(await codeOf(admin.userStatus(query))).to.deep.equal([404, 'unknown_account'])
        expect(await codeOf(admin.sendReset(query))).to.deep.equal([404, 'unknown_account'])
        expect(await codeOf(admin.endSessions(query))).to.deep.equal([404, 'unknown_account'])
      }
      expect(actionsOf(h)).to.have.length(actions)
      expect(mailsTo(h, bob)).to.equal(0)
      for (const user of ['bob', bob.email ?? ''])
        expect((await admin.userStatus({ user })).id).to.equal(bob.id)
    })

    it('and none of several: 409 with the candidates, and nothing is done', async () => {
      const first = await addUser({ id: 'id-of-cid', username: 'cid', email: 'cid@users.example' })
      const second = await addUser({ username: 'id-of-cid', email: 'second@users.example' })
      const third = await addUser({ username: 'cid@users.example', email: 'third@users.example' })
      const actions = actionsOf(h).length
      const meant = { 'id-of-cid': [first, second], 'cid@users.example': [first, third] }
      for (const [user, candidates] of Object.entries(meant)) {
        for (const call of CALLS) {
          const problem = await refusalOf(admin[call]({ user }))
          expect([problem.status, problem.code]).to.deep.equal([409, 'ambiguous_account'])
          expect(problem.candidates).to.have.deep.members(
            candidates.map(({ id, username }) => ({ id, username })),
          )
        }
      }
      expect(actionsOf(h)).to.have.length(actions)
      for (const user of [first, second, third]) {
        expect(mailsTo(h, user)).to.equal(0)
        expect((await admin.userStatus({ id: user.id })).username).to.equal(user.username)
      }
    })

    it('and none where both or neither of id and user are given: 400', async () => {
      const eve = await addUser()
      const actions = actionsOf(h).length
      for (const query of [{}, { id: eve.id, user: eve.username }]) {
        for (const call of CALLS) {
          expect(await codeOf(admin[call](query))).to.deep.equal([400, 'invalid_request'])
        }
      }
      expect(actionsOf(h)).to.have.length(actions)
      expect(mailsTo(h, eve)).to.equal(0)
      await sentReset(eve)
    })
  })

  describe('tells the status', () => {
    it('of the account, audited with who looked', async () => {
      const user = await addUser({ emailVerified: false })
      const { id, username, email } = user
      const actions = actionsOf(h, 'user_status').length
      const flags = { email_verified: false, disabled: false, has_password: true }
      expect(await admin.userStatus({ id })).to.include({ id, username, email, ...flags })
      expect(actionsOf(h, 'user_status')).to.have.length(actions + 1)
      expectAudited(actionsOf(h, 'user_status').at(-1), 'user_status', user)
    })

    const hints: Record<string, [user: Partial<User>, hints: RegExp[]]> = {
      'a verified one': [{}, [/is verified already, so it gets no verification mail/]],
      'an unverified one': [{ emailVerified: false }, [/not verified: .* must type the username/]],
      'a disabled one': [{ disabled: true }, [/is disabled, so it gets no mail/, /is verified/]],
      'one without an address': [
        { email: undefined, emailVerified: false },
        [/has no e-mail address/],
      ],
      'one with a bad address': [
        { email: 'two@users.example, addresses@users.example' },
        [/not one plain e-mail address/, /is verified/],
      ],
      'one without a password': [
        { passwordHash: undefined, emailVerified: false },
        [/has no password, so it gets no reset link/],
      ],
    }
    for (const [what, [user, expected]] of Object.entries(hints)) {
      it(`with the hints that are true of ${what}, and no others`, async () => {
        const { id } = await addUser(user)
        const { hints } = await admin.userStatus({ id })
        expect(hints).to.have.length(expected.length)
        expected.forEach((hint, at) => expect(hints[at]).to.match(hint))
      })
    }

    it('with the hint that an unverified account gets no reset link, where that is set', async () => {
      const unverified = await addUser({ emailVerified: false })
      const verified = await addUser()
      await h.put({ reset_requires_verified_email: 'true' })
      const { hints } = await admin.userStatus({ id: unverified.id })
      expect(hints).to.have.length(1)
      expect(hints[0]).to.match(/it gets no reset link \(reset_requires_verified_email\)/)
      expect((await admin.userStatus({ id: verified.id })).hints.join()).to.not.include('reset')
      const { mail_id } = await admin.sendReset({ id: unverified.id })
      expect((await outcomeOf(h, mail_id, 'ended')).reason).to.equal('not_verified')
      await h.put({ reset_requires_verified_email: 'false' })
      await sentReset(unverified)
    })

    it('with the hint that all mails wait while SMTP is not configured', async () => {
      const user = await addUser()
      const bare = await startHarness({ flows: { initialSettings: {} } })
      const { id } = await bare.addUser({ username: 'ann' })
      const { hints } = await adminOf(bare).userStatus({ id })
      expect(hints[0]).to.match(/SMTP is not configured.*: all mails wait/)
      const { mail_id } = await adminOf(bare).sendReset({ id })
      expect((await outcomeOf(bare, mail_id, 'waiting')).mail_id).to.equal(mail_id)
      await bare.close()
      expect((await admin.userStatus({ id: user.id })).hints.join()).to.not.include('SMTP')
    })

    it('without it where a development mailbox takes them', async () => {
      const transport = memoryMailbox()
      const flows = { initialSettings: {}, transport }
      const bare = await startHarness({ flows })
      const { id } = await bare.addUser({ username: 'ann' })
      expect((await adminOf(bare).userStatus({ id })).hints.join()).to.not.include('SMTP')
      const { mail_id } = await adminOf(bare).sendReset({ id })
      await outcomeOf(bare, mail_id, 'sent')
      expect(transport.messages()).to.have.length(1)
      await bare.close()
    })

    it('with the hint that there are dead letters, and the letters with their reason', async () => {
      const user = await addUser()
      answers.set(user.email ?? '', 'refuse')
      const { mail_id } = await admin.sendReset({ id: user.id })
      const dead = await outcomeOf(h, mail_id, 'dead')
      expect(dead).to.include({ reason: 'ERR_MAIL_REFUSED', attempts: 1 })
      expect(dead).to.not.have.property('next_attempt_at')
      const { hints, mails } = await admin.userStatus({ id: user.id })
      expect(hints.some((hint) => /dead letters/.test(hint))).to.equal(true)
      expect(mails).to.have.length(1)
      expect(mails[0]).to.include({ id: mail_id, state: 'dead', account_id: user.id })
      answers.delete(user.email ?? '')
      await admin.purgeMails({ id: mail_id })
      expect((await admin.userStatus({ id: user.id })).hints.join()).to.not.include('dead letters')
      await sentReset(user)
    })

    it('with its links, newest first: live, used, superseded, expired, void', async () => {
      const user = await addUser()
      const { link: replaced } = await sentReset(user)
      const { link: used } = await sentReset(user)
      expect((await h.reset(replaced, NEW)).mode).to.equal('invalid')
      expect((await h.reset(used, NEW)).mode).to.equal('done')
      const { mail_id } = await sentReset(user)
      const stateOf = async () =>
        (await admin.userStatus({ id: user.id })).links.map(({ state }) => state)
      expect(await stateOf()).to.deep.equal(['live', 'used', 'superseded'])
      const [live, spent, voided] = (await admin.userStatus({ id: user.id })).links
      expect(live).to.include({ kind: 'password_reset', mail_id })
      expect(spent).to.include.keys('used_at', 'completed_at')
      expect(voided).to.include.keys('invalidated_at').and.not.to.have.property('used_at')
      await h.changeUser(user, { disabled: true })
      expect(await stateOf()).to.deep.equal(['void', 'used', 'superseded'])
      await h.changeUser(user, { disabled: false })
      expect(await stateOf()).to.deep.equal(['live', 'used', 'superseded'])
    })

    it('with links that expired: one that is used ends the other of the address', async () => {
      const user = await addUnverified(h)
      await resend(h, user)
      await createUserAgent().get(await resend(h, user))
      expect(await isVerified(h, user)).to.equal(true)
      const { links } = await admin.userStatus({ id: user.id })
      expect(links.map(({ kind, state }) => `${kind} ${state}`)).to.deep.equal([
        'email_verification used',
        'email_verification expired',
      ])
    })

    it('with the mails and events of this account alone', async () => {
      const [one, other] = [await addUser(), await addUser()]
      await sentReset(one)
      await sentReset(other)
      const { events, links } = await admin.userStatus({ id: one.id })
      expect(events).to.not.deep.equal([])
      expect(new Set(events.map(({ account_id }) => account_id))).to.deep.equal(new Set([one.id]))
      expect(events.map(({ type }) => type)).to.include.members([
        'password_reset_requested',
        'password_reset_mail_sent',
        'admin_action',
      ])
      expect(links).to.have.length(1)
    })

    it('never with a token, its hash, a password hash, or what was typed', async () => {
      const user = await addUser()
      await h.forgot(user.email ?? '', { state: 'typed-state-canary' })
      const { link } = await h.mail.mailTo(user.email ?? '')
      await h.forgot('typed-identifier-canary')
      await h.reset(link, 'x')
      const stored = await h.users.findById(user.id)
      const all = JSON.stringify([
        await admin.userStatus({ id: user.id }),
        await admin.listAudit({ limit: 1000 }),
        await admin.listOutbox({ limit: 1000 }),
        await admin.explainLink({ link }),
      ])
      expect(all).to.include(user.id)
      const token = tokenOf(link)
      const secrets = [token, sha256(token), stored?.passwordHash ?? 'none']
      for (const secret of [...secrets, 'typed-identifier-canary', 'typed-state-canary']) {
        expect(all).to.not.include(secret)
      }
      expect(all).to.not.include(ADMIN_TOKEN)
      expect((await h.reset(link, NEW)).mode).to.equal('done')
    })
  })

  describe('sends a reset link', () => {
    it('that works, also to an address that is not verified, and ends the earlier one; audited with who asked', async () => {
      const user = await addUser({ emailVerified: false })
      const earlier = await h.resetLink(user)
      const { mail_id, link } = await sentReset(user)
      expect((await h.reset(earlier, NEW)).mode).to.equal('invalid')
      expect(await hasPassword(h, user, PASSWORD)).to.equal(true)
      expect((await h.reset(link, NEW)).mode).to.equal('done')
      expect(await hasPassword(h, user, NEW)).to.equal(true)
      expect(await outcomeOf(h, mail_id, 'sent')).to.include.keys('sent_at')
      expectAudited(actionsOf(h, 'send_reset').at(-1), 'send_reset', user)
      const requested = eventsOf(h, 'password_reset_requested', user).at(-1)
      expect(requested?.id).to.equal(`requested:${mail_id}`)
    })

    it('whose outcome is waiting while the mail server puts it off, and sent after', async () => {
      const user = await addUser()
      answers.set(user.email ?? '', 'defer')
      const { mail_id } = await admin.sendReset({ id: user.id })
      const waiting = await eventually('the mail server put it off', async () => {
        const outcome = await outcomeOf(h, mail_id, 'waiting')
        return outcome.reason !== undefined && outcome
      })
      expect(waiting).to.include({ reason: 'ERR_MAIL_FAILED', attempts: 1 })
      expect(waiting).to.include.keys('next_attempt_at')
      answers.delete(user.email ?? '')
      await moveTime(60_000)
      await outcomeOf(h, mail_id, 'sent')
      const { link } = await h.mail.mailTo(user.email ?? '')
      expect((await h.reset(link, NEW)).mode).to.equal('done')
    })

    const noMail: Record<string, Partial<User>> = {
      disabled: { disabled: true },
      no_address: { email: undefined },
      bad_address: { email: 'two@users.example, addresses@users.example' },
      no_password: { passwordHash: undefined },
    }
    for (const [reason, change] of Object.entries(noMail)) {
      it(`or a dead letter with the reason ${reason}, which can be retried once that is mended`, async () => {
        const user = await addUser()
        await h.changeUser(user, change)
        const { mail_id } = await admin.sendReset({ id: user.id })
        expect(await outcomeOf(h, mail_id, 'dead')).to.include({ reason })
        expect(mailsTo(h, user)).to.equal(0)
        expect((await admin.userStatus({ id: user.id })).links).to.deep.equal([])
        await h.changeUser(user, user)
        expect(await admin.retryMails({ id: mail_id })).to.deep.equal({ changed: 1 })
        const { link } = await h.mail.mailTo(user.email ?? '')
        await outcomeOf(h, mail_id, 'sent')
        expect((await createUserAgent().get(link)).mode).to.equal('form')
      })
    }

    it('or, ended and throttled, none beyond the mails of an account per hour', async () => {
      const user = await addUser()
      await h.put({ mails_per_account_per_hour: '1' })
      const { link } = await sentReset(user)
      const { mail_id } = await admin.sendReset({ id: user.id })
      expect(await outcomeOf(h, mail_id, 'ended')).to.include({ reason: 'throttled' })
      expect(mailsTo(h, user)).to.equal(1)
      expect((await h.reset(link, NEW)).mode).to.equal('done')
      await h.put({ mails_per_account_per_hour: '1000' })
      await sentReset(user)
    })

    it('or, ended and superseded, none once a later one was asked for', async () => {
      const user = await addUser()
      h.mail.fallSilent()
      const first = await admin.sendReset({ id: user.id })
      await isHeld(first.mail_id)
      const second = await admin.sendReset({ id: user.id })
      await isHeld(second.mail_id)
      h.mail.speak()
      expect(await outcomeOf(h, first.mail_id, 'ended')).to.include({ reason: 'superseded' })
      await outcomeOf(h, second.mail_id, 'sent')
      expect(mailsTo(h, user)).to.equal(1)
      const { link } = await h.mail.mailTo(user.email ?? '')
      expect((await h.reset(link, NEW)).mode).to.equal('done')
    })

    it('whose outcome, once a dead letter was retried, has the reason of its end', async () => {
      const user = await addUser()
      await h.changeUser(user, { disabled: true })
      const first = await admin.sendReset({ id: user.id })
      expect(await outcomeOf(h, first.mail_id, 'dead')).to.include({ reason: 'disabled' })
      await h.changeUser(user, { disabled: false })
      h.mail.fallSilent()
      await admin.retryMails({ id: first.mail_id })
      await isHeld(first.mail_id)
      const second = await admin.sendReset({ id: user.id })
      await isHeld(second.mail_id)
      h.mail.speak()
      expect(await outcomeOf(h, first.mail_id, 'ended')).to.include({ reason: 'superseded' })
      await outcomeOf(h, second.mail_id, 'sent')
    })

    it('and of what was never asked for, the outcome is unknown', async () => {
      for (const mail_id of ['no-such-mail', '$ne', 'requested:', '__proto__']) {
        expect(await admin.mailOutcome({ mail_id })).to.deep.equal({ mail_id, state: 'unknown' })
      }
    })
  })

  describe('sends a verification link', () => {
    it('that verifies; audited with who asked', async () => {
      const user = await addUnverified(h)
      const { mail_id } = await admin.sendVerification({ id: user.id })
      const { link } = await h.mail.mailTo(user.email ?? '')
      await outcomeOf(h, mail_id, 'sent')
      const answer = await createUserAgent().get(link)
      expect([answer.status, answer.mode]).to.deep.equal([200, 'verified'])
      expect(await isVerified(h, user)).to.equal(true)
      expectAudited(actionsOf(h, 'send_verification').at(-1), 'send_verification', user)
    })

    it('or none, ended, to who is verified already', async () => {
      const user = await addUser()
      const { mail_id } = await admin.sendVerification({ id: user.id })
      expect(await outcomeOf(h, mail_id, 'ended')).to.include({ reason: 'already_verified' })
      expect(mailsTo(h, user)).to.equal(0)
      await sentReset(user)
    })
  })

  describe('ends sessions', () => {
    it('of a signed-in account: its session and its refresh token are dead; counted and audited', async () => {
      const user = await addUser()
      const agent = createUserAgent()
      const { refresh_token } = await ask.offlineTokens(h, agent, user)
      const bystander = createUserAgent()
      const other = await addUser()
      expect((await h.signIn(bystander, other.username)).location).to.include('code=')

      const { oauth = 0, idp = 0 } = await admin.endSessions({ user: user.username })
      expect(oauth).to.be.at.least(1)
      expect(idp).to.be.at.least(1)
      expect(await ask.refresh(h, refresh_token)).to.equal('invalid_grant')
      expect(await accountOf(h, agent)).to.equal(undefined)
      const [ended] = eventsOf(h, 'sessions_ended', user)
      expect(ended?.details).to.deep.equal({ oauth, idp })
      expectAudited(actionsOf(h, 'end_sessions').at(-1), 'end_sessions', user)

      expect(await accountOf(h, bystander)).to.equal(other.id)
      expect((await h.signIn(agent, user.username)).location).to.include('code=')
      const status = await admin.userStatus({ id: user.id })
      expect(status.oauth_sessions_ended_at).to.be.a('string')
      expect(status.idp_sessions_ended_at).to.be.a('string')
    })

    it('of who is signed in nowhere: none, and it may sign in after', async () => {
      const user = await addUser()
      expect(await admin.endSessions({ id: user.id })).to.deep.equal({ oauth: 0, idp: 0 })
      expect((await h.signIn(createUserAgent(), user.username)).location).to.include('code=')
    })
  })
})

describe('The admin API with users of the host (2.3)', () => {
  const kept = new Map<string, User>()
  let h: Harness

  before(async () => {
    const passwordHash = await bcrypt.hash(PASSWORD, 4)
    const ada = { username: 'ada', email: 'ada@host.example', passwordHash, disabled: false }
    kept.set('host/1', { ...ada, id: 'host/1', emailVerified: false })
    h = await startHarness({
      flows: { users: hostUsers(kept) },
      provider: {
        async findAccount(_ctx, sub) {
          return kept.has(sub) ? { accountId: sub, claims: () => ({ sub }) } : undefined
        },
      },
    })
  })
  after(() => h.close())

  it('tells the status, sends links that work, and ends sessions', async () => {
    const admin = adminOf(h)
    const status = await admin.userStatus({ user: 'ada' })
    expect(status).to.include({ id: 'host/1', email: 'ada@host.example', email_verified: false })

    const verification = await admin.sendVerification({ user: 'ada' })
    await outcomeOf(h, verification.mail_id, 'sent')
    const opened = await createUserAgent().get((await h.mail.mailTo('ada@host.example')).link)
    expect(opened.mode).to.equal('verified')
    expect(kept.get('host/1')?.emailVerified).to.equal(true)

    const reset = await admin.sendReset({ user: 'ada@host.example' })
    await outcomeOf(h, reset.mail_id, 'sent')
    const { link } = await h.mail.mailTo('ada@host.example', 2)
    expect((await h.reset(link, NEW)).mode).to.equal('done')
    expect(await bcrypt.compare(NEW, kept.get('host/1')?.passwordHash ?? '')).to.equal(true)

    expect(await admin.endSessions({ id: 'host/1' })).to.deep.equal({ oauth: 0, idp: 0 })
    expect(eventsOf(h, 'sessions_ended').at(-1)?.accountId).to.equal('host/1')
    expect(await codeOf(admin.userStatus({ user: 'host' }))).to.deep.equal([404, 'unknown_account'])
  })
})

/** The least that a host brings. */
function hostUsers(kept: Map<string, User>): UserStore {
  const all = () => [...kept.values()]
  return {
    findById: async (id) => kept.get(id),
    findByUsername: async (username) => all().find((user) => user.username === username),
    findByVerifiedEmail: async (email) =>
      all().filter((user) => user.emailVerified && user.email === email),

    async replacePasswordHash(id, expected, next) {
      const user = kept.get(id)
      if (user?.passwordHash !== expected) return false
      kept.set(id, { ...user, passwordHash: next })
      return true
    },

    async markEmailVerified(id, email) {
      const user = kept.get(id)
      if (!user || user.disabled || user.emailVerified || user.email !== email) return false
      kept.set(id, { ...user, emailVerified: true })
      return true
    },
  }
}
