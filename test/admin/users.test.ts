import { expect } from 'chai'
import { memoryMailbox, memoryUsers, type User, type UserStore } from '../../src/index.ts'
import { createAdminClient } from '../../src/admin/client.ts'
import {
  actionsOf,
  adminOf,
  bearer,
  changesNothing,
  codeOf,
  expectAudited,
  outcomeOf,
  refusalOf,
  suiteAdmin,
} from '../support/admin.ts'
import {
  onEachStore,
  ADMIN_TOKEN,
  PASSWORD,
  startHarness,
  type Harness,
  suiteHarness,
} from '../support/harness.ts'
import { snakeCase } from '../../src/store/kind.ts'
import { cliOf } from '../support/cli.ts'
import type { MailAnswer } from '../support/mail-server.ts'
import * as ask from '../support/oauth-requests.ts'
import { sha256 } from '../support/observe.ts'
import { tokenOf, type Person } from '../support/person.ts'
import { allIn, instead } from '../support/records.ts'
import { createUserAgent } from '../support/user-agent.ts'

const NEW = 'a brand new password'
const CALLS = ['userStatus', 'sendReset', 'sendVerification', 'endSessions'] as const

describe('The admin API about users (5)', () => {
  const h = suiteHarness()
  const admin = suiteAdmin(h)

  async function sentReset(user: Person) {
    const count = user.mailCount()
    const { mail_id } = await admin.sendReset({ id: user.id })
    const { link } = await user.mail(count + 1)
    await outcomeOf(h, mail_id, 'sent')
    return { link, mail_id }
  }

  const hintsOf = async ({ id }: User) => (await admin.userStatus({ id })).hints

  it('finds one account by its username, its verified address in either ASCII case, its id, or several of these at once; by an unverified address for its status alone', async () => {
    const ann = await h.addVerified({ username: 'ann', id: 'id/of/ann', email: 'ann@a.example' })
    for (const user of ['ann', 'ann@a.example', 'ANN@A.Example', 'id/of/ann'])
      expect((await admin.userStatus({ user })).id).to.equal(ann.id)
    expect((await admin.userStatus({ id: 'id/of/ann' })).username).to.equal('ann')
    const user = 'dee@users.example'
    const dee = await h.addVerified({ id: user, username: user, email: user })
    expect((await admin.userStatus({ user })).id).to.equal(dee.id)

    const byAddress = { user: 'bob@users.example' }
    const bob = await h.addUnverified({ username: 'bob', email: byAddress.user })
    await changesNothing(h, async () => {
      for (const query of [byAddress, { id: 'bob' }, { user: 'no such user' }]) {
        for (const call of CALLS) {
          if (query === byAddress && call === 'userStatus') continue
          expect(await codeOf(admin[call](query))).to.deep.equal([404, 'unknown_account'])
        }
      }
    })
    for (const query of [byAddress, { user: 'bob' }])
      expect((await admin.userStatus(query)).id).to.equal(bob.id)
  })

  it('takes a user for no problem, whatever other fields the host keeps', async () => {
    const user = await h.addVerified()
    const { id } = user
    const row = { code: 'de', title: 'Dr', status: 200, type: 'staff', errors: [] }
    const asRow = (find: typeof h.users.findById) => async (of: string) => {
      const found = await find(of)
      return found && { ...row, ...found }
    }
    await instead(h.users, 'findById', asRow, async () => {
      expect(await admin.endSessions({ id }))
        .to.include({ oauth: 0 })
        .and.not.have.property('code')
      await sentReset(user)
      const { id: told } = await admin.userStatus({ id })
      expect(told).to.equal(id)
    })
  })

  it('takes a user without a username for no answer: what the host keeps is not sent', async () => {
    const user = await h.addVerified()
    const { id, passwordHash = '' } = user
    const withoutName = (find: typeof h.users.findById) => async (of: string) => {
      const { username: _, ...rest } = (await find(of)) ?? { username: '' }
      // A host in JavaScript may leave the name out.
      return 'id' in rest ? (rest as User) : undefined
    }
    await instead(h.users, 'findById', withoutName, async () => {
      const url = `${h.baseUrl}/admin/api/users/status`
      const headers = { ...bearer, 'content-type': 'application/json' }
      const body = JSON.stringify({ id })
      const status = await (await fetch(url, { method: 'POST', headers, body })).text()
      const changed = await admin.emailChanged({ id })
      for (const answer of [status, JSON.stringify(changed)])
        expect(answer).to.not.include(passwordHash).and.not.include('passwordHash')
      expect(JSON.parse(status)).to.include({ id }).and.include.keys('summary', 'links')
      expect(changed).to.deep.equal({})
      expectAudited(h, 'email_changed', user)
      await changesNothing(h, async () => {
        expect(await codeOf(admin.userStatus({ id: 'nobody' }))).to.include(404)
      })
    })
    expect((await admin.userStatus({ id })).username).to.equal(user.username)
  })

  it('finds none of several accounts: 409 with the candidates, and nothing is done', async () => {
    const cid = { id: 'id-of-cid', username: 'cid', email: 'cid@a.example' }
    const first = await h.addVerified(cid)
    const second = await h.addVerified({ username: 'id-of-cid' })
    const third = await h.addVerified({ username: 'cid@a.example' })
    await changesNothing(h, async () => {
      for (const [user, meant] of [
        ['id-of-cid', [first, second]],
        ['cid@a.example', [first, third]],
      ] as const) {
        const candidates = meant.map(({ id, username }) => ({ id, username }))
        for (const call of CALLS) {
          const problem = await refusalOf(admin[call]({ user }))
          expect([problem.status, problem.code]).to.deep.equal([409, 'ambiguous_account'])
          expect(problem.candidates).to.have.deep.members(candidates)
        }
      }
    })
    for (const { id, username } of [first, second, third])
      expect((await admin.userStatus({ id })).username).to.equal(username)
  })

  it('tells the status of the account, audited with who looked', async () => {
    const user = await h.addUnverified()
    const { id, username, email } = user
    const actions = actionsOf(h, 'user_status').length
    const flags = { email_verified: false, disabled: false, has_password: true }
    expect(await admin.userStatus({ id })).to.include({ id, username, email, ...flags })
    expect(actionsOf(h, 'user_status')).to.have.length(actions + 1)
    expectAudited(h, 'user_status', user)
  })

  const unverified = { emailVerified: false }
  const hints: [what: string, user: Partial<User>, hints: RegExp[]][] = [
    ['a verified one', {}, [/is verified already, so it gets no verification mail/]],
    ['an unverified one', unverified, [/not verified: .* must type the username/]],
    ['a disabled one', { disabled: true }, [/disabled, so it gets no mail/, /is verified/]],
    ['one without an address', { ...unverified, email: undefined }, [/has no e-mail address/]],
    ['one with a bad address', { email: 'a@b.example, c@d.example' }, [/not one plain/, /is ver/]],
    ['one without a password', { ...unverified, passwordHash: undefined }, [/no password, so/]],
  ]
  for (const [what, user, expected] of hints) {
    it(`tells the status with the hints that are true of ${what}, and no others`, async () => {
      const told = await hintsOf(await h.addVerified(user))
      expect(told).to.have.length(expected.length)
      expected.forEach((hint, at) => expect(told[at]).to.match(hint))
    })
  }

  it('tells the status with the hint that an unverified account gets no reset link, where that is set', async () => {
    const [user, verified] = [await h.addUnverified(), await h.addVerified()]
    await h.put({ reset_requires_verified_email: 'true' })
    const told = await hintsOf(user)
    expect(told).to.have.length(1)
    expect(told[0]).to.match(/it gets no reset link \(reset_requires_verified_email\)/)
    expect((await hintsOf(verified)).join()).to.not.include('reset')
    const { mail_id } = await admin.sendReset({ id: user.id })
    expect((await outcomeOf(h, mail_id, 'ended')).reason).to.equal('not_verified')
    await h.put({ reset_requires_verified_email: 'false' })
    await sentReset(user)
  })

  it('tells the status with the hint that all mails wait while SMTP is not configured, and no development mailbox takes them', async () => {
    const transport = memoryMailbox()
    for (const [flows, state, told] of [
      [{ initialSettings: {} }, 'waiting', true],
      [{ initialSettings: {}, transport }, 'sent', false],
    ] as const) {
      const bare = await startHarness({ flows })
      const { id } = await bare.addUser({ username: 'ann' })
      const late = await bare.addUser({ username: 'late', emailVerified: false })
      for (const each of [id, late.id])
        expect((await adminOf(bare).userStatus({ id: each })).cause).to.equal('mail_server_down')
      const { hints } = await adminOf(bare).userStatus({ id })
      expect(/SMTP is not configured.*: all mails wait/.test(hints[0] ?? '')).to.equal(told)
      const { mail_id } = await adminOf(bare).sendReset({ id })
      await outcomeOf(bare, mail_id, state)
      const { cause, summary } = await adminOf(bare).userStatus({ id })
      expect(cause).to.equal('mail_server_down')
      expect(/: all mails go into the development mailbox/.test(summary)).to.equal(!told)
      await bare.close()
    }
    expect(transport.messages()).to.have.length(1)
    expect((await hintsOf(await h.addVerified())).join()).to.not.include('SMTP')
  })

  it('tells the status with its events and links and no others, newest first: live, used, superseded, void', async () => {
    const user = await h.addVerified()
    const { link: replaced } = await sentReset(user)
    const { link: used } = await sentReset(user)
    expect((await h.reset(replaced, NEW)).mode).to.equal('invalid')
    expect((await h.reset(used, NEW)).mode).to.equal('done')
    const { mail_id } = await sentReset(user)
    await sentReset(await h.addVerified())
    const { events } = await admin.userStatus({ id: user.id })
    expect(new Set(events.map(({ account_id }) => account_id))).to.deep.equal(new Set([user.id]))
    expect(events.map(({ type }) => type)).to.include.members([
      'password_reset_requested',
      'password_reset_mail_sent',
      'admin_action',
    ])
    const linksOf = async () => (await admin.userStatus({ id: user.id })).links
    const statesOf = async () => (await linksOf()).map(({ state }) => state)
    expect(await statesOf()).to.deep.equal(['live', 'used', 'superseded'])
    const [live, spent, voided] = await linksOf()
    expect(live).to.include({ kind: 'password_reset', mail_id })
    expect(spent).to.include.keys('used_at', 'completed_at')
    expect(voided).to.include.keys('invalidated_at').and.not.to.have.property('used_at')
    await user.becomes({ disabled: true })
    expect(await statesOf()).to.deep.equal(['void', 'used', 'superseded'])
    await user.becomes({ disabled: false })
    expect(await statesOf()).to.deep.equal(['live', 'used', 'superseded'])
  })

  it('tells the status never with a token, its hash, a password hash, or what was typed', async () => {
    const user = await h.addVerified()
    await h.forgot(user.email ?? '', { state: 'typed-state-canary' })
    const { link } = await user.mail(1)
    await h.forgot('typed-identifier-canary')
    await h.reset(link, 'x')
    const all = JSON.stringify([
      await admin.userStatus({ id: user.id }),
      await admin.listAudit({ limit: 1000 }),
      await admin.listOutbox({ limit: 1000 }),
      await admin.explainLink({ link }),
    ])
    expect(all).to.include(user.id)
    const secrets = [tokenOf(link), sha256(tokenOf(link)), user.passwordHash ?? '', ADMIN_TOKEN]
    for (const secret of [...secrets, 'typed-identifier-canary', 'typed-state-canary'])
      expect(all).to.not.include(secret)
    expect((await h.reset(link, NEW)).mode).to.equal('done')
  })

  it('sends a reset link that works, also to an address that is not verified, and ends the earlier one; audited with who asked', async () => {
    const user = await h.addUnverified()
    const earlier = await user.forgets()
    const { mail_id, link } = await sentReset(user)
    expect((await h.reset(earlier, NEW)).mode).to.equal('invalid')
    expect(await user.hasPassword(PASSWORD)).to.equal(true)
    expect((await h.reset(link, NEW)).mode).to.equal('done')
    expect(await user.hasPassword(NEW)).to.equal(true)
    expect(await outcomeOf(h, mail_id, 'sent')).to.include.keys('sent_at')
    expectAudited(h, 'send_reset', user)
    const requested = user.events('password_reset_requested').at(-1)
    expect(requested?.id).to.equal(`requested:${mail_id}`)
  })

  const noMail: [reason: string, change: Partial<User>, answer?: MailAnswer][] = [
    ['disabled', { disabled: true }],
    ['no_address', { email: undefined }],
    ['bad_address', { email: 'two@users.example, addresses@users.example' }],
    ['no_password', { passwordHash: undefined }],
    ['ERR_MAIL_REFUSED', {}, 'refuse'],
  ]
  for (const [reason, change, answer = 'take'] of noMail) {
    it(`sends a reset link, or a dead letter with the reason ${reason}, of which a hint tells, and which can be retried once that is mended`, async () => {
      const user = await h.addVerified()
      const { id, email = '', passwordHash } = user
      await user.becomes(change)
      h.mail.answers.set(email, answer)
      const { mail_id } = await admin.sendReset({ id })
      const dead = await outcomeOf(h, mail_id, 'dead')
      expect(dead).to.include({ reason }).and.not.have.property('next_attempt_at')
      expect(user.mailCount()).to.equal(0)
      const { hints, mails, links } = await admin.userStatus({ id })
      expect(hints.join()).to.include('dead letters')
      expect(mails).to.have.length(1)
      expect(mails[0]).to.include({ id: mail_id, state: 'dead', account_id: id, reason })
      if (answer === 'refuse') expect(dead).to.include({ attempts: 1 })
      else expect(links).to.deep.equal([])

      h.mail.answers.delete(email)
      await user.becomes({ email, passwordHash, disabled: false })
      expect(await admin.retryMails({ id: mail_id })).to.deep.equal({ changed: 1 })
      expect(expectAudited(h, 'outbox_retry').details).to.include({ mail_id })
      const { link } = await user.mail(1)
      await outcomeOf(h, mail_id, 'sent')
      expect((await hintsOf(user)).join()).to.not.include('dead letters')
      expect((await h.reset(link, NEW)).mode).to.equal('done')
      expect(await user.hasPassword(NEW)).to.equal(true)
    })
  }

  it('knows no outcome of a mail that was never asked for', async () => {
    for (const mail_id of ['no-such-mail', '$ne', 'requested:', '__proto__']) {
      expect(await admin.mailOutcome({ mail_id })).to.deep.equal({ mail_id, state: 'unknown' })
    }
  })

  it('sends a verification link that verifies, audited with who asked; or none, ended, to who is verified already', async () => {
    const user = await h.addUnverified()
    const { mail_id } = await admin.sendVerification({ id: user.id })
    const { link } = await user.mail(1)
    await outcomeOf(h, mail_id, 'sent')
    const answer = await createUserAgent().get(link)
    expect([answer.status, answer.mode]).to.deep.equal([200, 'verified'])
    expect(await user.isVerified()).to.equal(true)
    expectAudited(h, 'send_verification', user)
    const again = await admin.sendVerification({ id: user.id })
    expect(await outcomeOf(h, again.mail_id, 'ended')).to.include({ reason: 'already_verified' })
    expect(user.mailCount()).to.equal(1)
  })

  it('hears of a changed address: a link to the new one, a notice to the one before if it is given and an address, audited', async () => {
    const user = await h.addVerified()
    const [{ id, email: before = '' }, email] = [user, 'another@users.example']
    await user.becomes({ email, emailVerified: false })
    await changesNothing(h, async () => {
      const wrong = admin.emailChanged({ id, before: `${before}, other@users.example` })
      expect((await refusalOf(wrong)).errors?.[0]?.key).to.equal('before')
      expect(await codeOf(admin.emailChanged({ id: 'nobody', before }))).to.include(404)
    })
    const { mail_id = '', notice_id = '' } = await admin.emailChanged({ user: email, before })
    for (const asked of [mail_id, notice_id]) await outcomeOf(h, asked, 'sent')
    expect((await user.mail(1)).kind).to.equal('email_changed')
    expectAudited(h, 'email_changed', user)
    expect(await admin.emailChanged({ id })).to.have.all.keys('mail_id')
    await h.isIdle()
    await user.isOnlyVerified(await user.in().opensLink((await h.mail.mailTo(email)).link))
  })

  it('ends sessions: session and refresh token are dead, counted and audited; none of who is signed in nowhere', async () => {
    const [user, bystander] = [await h.addVerified(), await h.addVerified()]
    const { refresh_token } = await ask.offlineTokens(h, user.agent, user)
    await bystander.signsIn()

    const { oauth = 0, idp = 0 } = await admin.endSessions({ user: user.username })
    expect(oauth).to.be.at.least(1)
    expect(idp).to.be.at.least(1)
    expect(await ask.refresh(h, refresh_token)).to.equal('invalid_grant')
    expect(await user.account()).to.equal(undefined)
    expect(user.events('sessions_ended')[0]?.details).to.deep.equal({ oauth, idp })
    expectAudited(h, 'end_sessions', user)
    const status = await admin.userStatus({ id: user.id })
    expect(status).to.include.keys('oauth_sessions_ended_at', 'idp_sessions_ended_at')

    expect(await bystander.account()).to.equal(bystander.id)
    const nobody = await h.addVerified()
    expect(await admin.endSessions({ id: nobody.id })).to.deep.equal({ oauth: 0, idp: 0 })
    for (const each of [user, nobody]) expect((await each.signsIn()).location).to.include('code=')
  })

  describe('verifies an address and takes that back', () => {
    const cli = cliOf(h)

    it('once, audited with who asked; no mail is sent', async () => {
      const user = await h.addUnverified()
      const { id, username, email } = user
      expect(await admin.verifyUser({ id })).to.deep.equal({ email, changed: true })
      expectAudited(h, 'user_verify', user)
      expect(await user.isVerified()).to.equal(true)
      expect(await admin.verifyUser({ id })).to.deep.equal({ email, changed: false })
      const said = async (verb: string) => (await cli.done(['user', verb, username])).stdout
      expect(await said('unverify')).to.equal(`${email} is unverified now.\n`)
      expectAudited(h, 'user_unverify', user)
      expect(await user.isVerified()).to.equal(false)
      expect(await said('unverify')).to.match(/^Nothing changed: /)
      expect(await said('verify')).to.match(/ is verified now\.\n$/)
      expect(user.mailCount()).to.equal(0)
      // What was asked for each time, and what changed something.
      const made = actionsOf(h).filter(({ accountId }) => accountId === id)
      expect(made.map(({ details }) => [details.action, details['changed']])).to.deep.equal([
        ['user_verify', undefined],
        ['user_verified', 'true'],
        ['user_verify', undefined],
        ['user_unverify', undefined],
        ['user_unverified', 'true'],
        ['user_unverify', undefined],
        ['user_verify', undefined],
        ['user_verified', 'true'],
      ])
    })

    const taken = { email: 'taken@users.example' }
    const refusals: [of: string, user: Partial<User>, code: string, mended: Partial<User>][] = [
      ['a disabled account', { disabled: true }, 'not_verified', { disabled: false }],
      ['one without an address', { email: undefined }, 'no_address', { email: 'a@b.example' }],
      ['one whose address another has', taken, 'address_taken', { email: 'half@users.example' }],
    ]
    for (const [of, user, code, mended] of refusals) {
      it(`but not that of ${of}: 409, and nothing changes until it is mended`, async () => {
        const owner = await h.addVerified(code === 'address_taken' ? taken : {})
        const added = await h.addUnverified(user)
        const { id } = added
        expect(await codeOf(admin.verifyUser({ id }))).to.deep.equal([409, code])
        if (code === 'no_address')
          expect(await codeOf(admin.unverifyUser({ id }))).to.deep.equal([409, code])
        expect(await added.isVerified()).to.equal(false)
        // The address names its owner still.
        expect((await admin.userStatus({ id: owner.id })).cause).to.equal('not_asked')
        expect((await admin.verifyUser({ id: owner.id })).changed).to.equal(false)
        await added.becomes(mended)
        expect((await admin.verifyUser({ id })).changed).to.equal(true)
      })
    }

    it('of two accounts at once: never both, and one once it is asked for alone', async () => {
      const users = memoryUsers()
      let release = () => {}
      const bothLooked = new Promise<void>((resolve) => (release = resolve))
      let looks = 0
      const together: UserStore = {
        ...users,
        async findByVerifiedEmail(email) {
          const found = await users.findByVerifiedEmail(email)
          looks += 1
          // Both have looked before either of them changes anything.
          if (looks > 1) release()
          await bothLooked
          return found
        },
      }
      const bare = await startHarness({ flows: { users: together } })
      const email = 'twins@users.example'
      const account = { email, emailVerified: false, passwordHash: undefined, disabled: false }
      for (const id of ['u1', 'u2']) users.add({ ...account, id, username: id })
      const verify = (id: string) => adminOf(bare).verifyUser({ id })
      const answers = await Promise.allSettled(['u1', 'u2'].map(verify))
      expect((await users.findByVerifiedEmail(email)).length).to.be.at.most(1)
      for (const [at, { status }] of answers.entries()) {
        const user = await users.findById(`u${at + 1}`)
        expect(user?.emailVerified).to.equal(status === 'fulfilled')
        await adminOf(bare).unverifyUser({ id: `u${at + 1}` })
      }
      expect((await verify('u1')).changed).to.equal(true)
      expect(await codeOf(verify('u2'))).to.deep.equal([409, 'address_taken'])
      await bare.close()
    })
  })
})

describe('The admin API with users of a host that brings the least (2.3)', () => {
  const least: UserStore = {
    findById: (id) => h.users.findById(id),
    findByUsername: (name) => h.users.findByUsername(name),
    findByVerifiedEmail: (email) => h.users.findByVerifiedEmail(email),
    replacePasswordHash: (...change) => h.users.replacePasswordHash(...change),
    markEmailVerified: (...change) => h.users.markEmailVerified(...change),
  }
  const h: Harness = suiteHarness({ flows: { users: least } })
  const admin = suiteAdmin(h)

  it('finds them by verified addresses alone, and says so', async () => {
    const eve = await h.addUser({ username: 'eve', emailVerified: false })
    const asked = () => admin.userStatus({ user: 'eve@users.example' })
    expect((await refusalOf(asked())).title).to.include('Did you mean this one?')
    await eve.becomes({ username: 'other' })
    expect((await refusalOf(asked())).title).to.include('unverified address finds no account here')
    await eve.becomes({ emailVerified: true })
    expect((await asked()).id).to.equal(eve.id)
  })

  it('takes no verification back: 409, with the reason', async () => {
    const user = await h.addUser({ username: 'verified' })
    const asked = admin.unverifyUser({ id: user.id })
    expect(await codeOf(asked)).to.deep.equal([409, 'unsupported'])
    expect(await user.isVerified()).to.equal(true)
    expect((await admin.verifyUser({ id: user.id })).changed).to.equal(false)
  })

  it('forgets one who is gone by the id, and takes no other account for it', async () => {
    const gone = await h.addUser({ username: 'gone' })
    const named = await h.addUser({ username: gone.id })
    for (const user of [gone, named]) await user.forgets()
    await gone.isDeleted()
    expect(await codeOf(admin.endSessions({ id: gone.id }))).to.deep.equal([404, 'unknown_account'])
    const events = async (id: string) => (await admin.listAudit({ account_id: id })).events.length
    const ofNamed = await events(named.id)
    const erased = await admin.forgetUser({ id: gone.id })
    expect(erased).to.include({ reset_links: 1, under_way: 0 })
    expect(await events(gone.id)).to.equal(0)
    expect(await events(named.id)).to.equal(ofNamed)
    expect((await admin.userStatus({ id: named.id })).links).to.have.length(1)
  })
})

const SUPPORT = 'account-flows:support'
const SUPPORT_TOKEN = 'a token of support'.padEnd(40, '-').replaceAll(' ', '-')

/** Where something about an account may be; session cut-offs stay, with its id and times. */
const COLLECTIONS = [
  'audit_events',
  'mail_outbox',
  'password_reset_tokens',
  'email_verification_tokens',
  'pending_logins',
  'client_logouts',
  'rate_limits',
]

onEachStore('Forgetting an account (5)', (technology) => {
  const h = suiteHarness({
    technology,
    // One that cannot delete: what was ended is dead by the cut-off alone.
    adapter: ask.withoutAccounts,
    flows: { adminToken: [ADMIN_TOKEN, { token: SUPPORT_TOKEN, scopes: [SUPPORT] }] },
  })
  const admin = suiteAdmin(h)

  /** Everything that our collections hold, as one text. */
  async function stored(): Promise<string> {
    const limit = 1000
    const all: unknown[] = [await admin.listAudit({ limit }), await admin.listOutbox({ limit })]
    const inDatabase = await allIn(h.database ?? {})
    for (const name of h.database ? COLLECTIONS : []) {
      expect(inDatabase.has(name), name).to.equal(true)
      all.push(name, inDatabase.get(name))
    }
    return JSON.stringify(all)
  }

  let named = 0

  /** Has waited for a link, was verified, has reset its password, and has a dead letter. */
  async function busy(): Promise<Person> {
    named += 1
    const user = await h.addUnverified({ id: `id-of-somebody-busy-${named}` })
    await h.blockedLogin({ user })
    await user.opensElsewhere(await user.asksAgain())
    await user.getsBackIn(NEW)
    h.mail.answers.set(user.email ?? '', 'refuse')
    await admin.sendReset({ id: user.id })
    await h.isIdle()
    h.mail.answers.delete(user.email ?? '')
    return user
  }

  it('erases its mails, links, logins that wait and events, and nothing of anybody else; told in numbers (LOG-12)', async () => {
    const [ann, bob] = [await busy(), await busy()]
    const statusOf = ({ id }: User) => admin.userStatus({ id })
    const other = await statusOf(bob)
    const before = await stored()
    expect(before).to.include(ann.id)
    if (h.database) expect(before).to.include(ann.email)

    const erased = await admin.forgetUser({ id: ann.id })
    const after = await stored()
    for (const known of [ann.id, ann.email ?? ann.id]) expect(after).not.to.include(known)
    expect(erased).to.include({ mails: 1, reset_links: 2, verification_links: 2, under_way: 0 })
    expect(erased.waiting_logins).to.equal(1)
    expect(erased.events).to.be.at.least(5)

    const { links, mails } = await statusOf(bob)
    expect({ links, mails }).to.deep.equal({ links: other.links, mails: other.mails })
    expect((await statusOf(bob)).events).to.deep.include.members(other.events.slice(0, 5))
    expect((await admin.forgetUser({ id: ann.id })).events).to.equal(0)
    expect((await ann.signsIn(NEW)).location).to.include('code=')
  })

  it('ends its live link, lets it ask for another one, and brings nothing back that was ended (LOG-12)', async () => {
    const user = await h.addVerified()
    await user.signsIn()
    expect(await user.account()).to.equal(user.id)
    await admin.endSessions({ id: user.id })
    expect(await user.account()).to.equal(undefined)
    const link = await user.forgets()
    await admin.forgetUser({ id: user.id })
    expect(await user.account()).to.equal(undefined)
    expect((await admin.userStatus({ id: user.id })).idp_sessions_ended_at).to.be.a('string')
    expect((await h.reset(link, NEW)).mode).to.equal('invalid')
    await user.getsBackIn(NEW)
  })

  it('keeps what support did to it, and who, with a keyed hash in place of the id: support cannot erase its own traces (LOG-12)', async () => {
    const { id } = await h.addUser({ username: 'dear', id: 'id-of-somebody-dear' })
    const support = createAdminClient(h.baseUrl, SUPPORT_TOKEN)
    await support.sendReset({ id })
    await h.isIdle()
    await support.endSessions({ id })
    const listed = () => admin.listAudit({ type: ['admin_action'], limit: 2 })
    const before = (await listed()).events
    expect(before.map(({ account_id }) => account_id)).to.deep.equal([id, id])

    await support.forgetUser({ id })
    const { events } = await admin.listAudit({ type: ['admin_action'], limit: 3 })
    const [forgotten, ...kept] = events
    const account_hash = forgotten?.details?.['account_hash']
    expect(account_hash).to.be.a('string')
    expect(kept).to.deep.equal(
      before.map(({ account_id: _id, username: _name, details, ...event }) => ({
        ...event,
        details: { ...details, account_hash },
      })),
    )
    expect(events.map(({ details }) => [details?.['action'], details?.['actor']])).to.deep.equal(
      ['user_forget', 'end_sessions', 'send_reset'].map((a) => [a, 'admin_token:support']),
    )
    expect(await stored()).not.to.include(id)
    expect((await admin.listAudit({ account_id: id })).events).to.deep.equal([])

    await support.forgetUser({ id: String(account_hash) })
    await support.forgetUser({ id })
    const after = await admin.listAudit({ type: ['admin_action'], limit: 5 })
    const [again, ofHash, ...rest] = after.events
    expect(rest).to.deep.equal(events)
    expect(again?.details?.['account_hash']).to.equal(account_hash)
    expect(ofHash?.details?.['account_hash']).not.to.equal(account_hash)
    expect(JSON.stringify(actionsOf(h, 'user_forget'))).not.to.include(id)
    expect((await support.sendReset({ id })).mail_id).to.be.a('string')
  })

  it('has nothing to erase of an id that is unknown', async () => {
    const links = { reset_links: 0, verification_links: 0, invitation_links: 0, not_me_links: 0 }
    const others = { mails: 0, waiting_logins: 0, client_logouts: 0, events: 0, under_way: 0 }
    const erased = await admin.forgetUser({ id: 'no such id' })
    expect(erased).to.include({ ...links, ...others })
    expect(new Set(Object.values(erased))).to.deep.equal(new Set([0]))
    const counted = await h.store.forget('no such id', new Date(), '')
    expect(Object.keys(erased)).to.have.members(Object.keys(counted).map(snakeCase))
  })
})
