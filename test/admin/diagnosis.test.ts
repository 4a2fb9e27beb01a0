import { expect } from 'chai'
import { memoryUsers, type AdminApi, type User } from '../../src/index.ts'
import { actionsOf, adminOf, outcomeOf, refusalOf } from '../support/admin-calls.ts'
import { mailsTo } from '../support/blocked-login.ts'
import { cliOf } from '../support/cli.ts'
import { eventually } from '../support/eventually.ts'
import { expectPage } from '../support/expect-page.ts'
import { answers as answersAt, startFaultySmtp } from '../support/mail-server.ts'
import { freePort } from '../support/free-port.ts'
import { startHarness } from '../support/harness.ts'
import { choose, invitedUser } from '../support/invitations.ts'
import { isIdle } from '../support/jobs.ts'
import type { MailAnswer } from '../support/mail-server.ts'
import { disown, notMeLink } from '../support/not-me.ts'
import { eventsOf, tokenOf } from '../support/observe.ts'
import { suiteHarness } from '../support/suite-harness.ts'

describe('"I never got the mail": user status answers with the cause and what to do', () => {
  const answers = new Map<string, MailAnswer>()
  const h = suiteHarness({ mail: { answer: (recipient) => answers.get(recipient) ?? 'take' } })
  const cli = cliOf(h)
  let added = 0

  async function addUser(user: Partial<User> = {}): Promise<User & { email: string }> {
    added += 1
    const made = await h.addUser({ username: `person${added}`, ...user })
    return { ...made, email: made.email ?? '' }
  }

  /** By the address alone, as the command line tells it in its first line, and the API in its fields. */
  async function asked(about: string): Promise<AdminApi.UserStatus> {
    const status = await adminOf(h).userStatus({ user: about })
    const { stdout } = await cli.done(['user', 'status', about])
    expect(stdout.split('\n')[0]).to.equal(`${status.summary} ${status.advice}`)
    return status
  }

  async function failedReset(user: User): Promise<string> {
    const { mail_id } = await adminOf(h).sendReset({ id: user.id })
    await eventually('an attempt failed', async () =>
      h.events.some(({ id }) => id.startsWith(`mail_failed:${mail_id}:1:`)),
    )
    return mail_id
  }

  const lastFailure = (user: User) => eventsOf(h, 'password_reset_mail_failed', user).at(-1)

  it('unknown: exit 1, and the first line says what to ask', async () => {
    const { exitCode, stderr, stdout } = await cli.run(['user', 'status', 'nobody@users.example'])
    expect([exitCode, stdout]).to.deep.equal([1, ''])
    expect(stderr).to.match(/^There is no account .* Ask the person how it is spelled\.\n$/)
  })

  it('misspelt: blanks, case, an address for a name; what exists is told, and nothing is done', async () => {
    const carol = await addUser({ username: 'carol' })
    const Dora = await addUser({ username: 'Dora', emailVerified: false })
    const McDonald = await addUser({ username: 'McDonald' })
    const actions = actionsOf(h).length
    const meant = {
      ' carol': carol,
      Carol: carol,
      'CAROL ': carol,
      'carol@elsewhere.example': carol,
      mcdonald: McDonald,
      dora: Dora,
      DORA: Dora,
      [`${Dora.email} `]: Dora,
    }
    for (const [typed, { id, username }] of Object.entries(meant)) {
      const refusal = await refusalOf(adminOf(h).userStatus({ user: typed }))
      expect(refusal).to.deep.include({ code: 'unknown_account', candidates: [{ id, username }] })
      const { stderr } = await cli.run(['user', 'status', typed])
      expect(stderr).to.match(/^There is no account .* Did you mean this one\?\n/)
      expect(stderr).to.match(new RegExp(`^${id} +${username}$`, 'm'))
    }
    for (const other of ['carl', 'car', 'carolx', 'c\u0430rol', '@', ' '])
      expect(await refusalOf(adminOf(h).userStatus({ user: other })), other).to.not.have.property(
        'candidates',
      )
    // What does something takes no address that nobody verified, and says whose it is.
    const refusal = await refusalOf(adminOf(h).sendReset({ user: Dora.email }))
    expect(refusal.candidates).to.deep.equal([{ id: Dora.id, username: 'Dora' }])
    expect(actionsOf(h)).to.have.length(actions)
    expect(mailsTo(h, carol) + mailsTo(h, Dora)).to.equal(0)
    expect((await asked('carol')).id).to.equal(carol.id)
  })

  it('unverified: found by its address in either case, and told who asked with it', async () => {
    const user = await addUser({ emailVerified: false })
    const before = await asked(user.email.toUpperCase())
    expect(before).to.include({ id: user.id, cause: 'unverified' })
    expect(before.summary).to.include('must type the username')
    await h.forgot(user.email)
    await isIdle(h)
    const after = await asked(user.email)
    expect(after.cause).to.equal('unverified')
    expect(after.summary).to.match(/somebody typed it at \S+ and got no mail/)
    expect(after.advice).to.include(`account-flows user send-verification --id ${user.id}`)
  })

  it('no password, and its address not verified: neither another request nor a verification helps', async () => {
    const user = await addUser({ passwordHash: undefined, emailVerified: false })
    const invite = `account-flows user invite --id ${user.id}`
    const before = await asked(user.email)
    expect(before.cause).to.equal('no_password')
    expect(before.advice).to.include(invite)
    await h.forgot(user.email)
    await isIdle(h)
    const after = await asked(user.email)
    expect(after.cause).to.equal('no_password')
    expect(after.advice).to.include(invite)
  })

  it('a password, once the invitation was used: its mail is not the one that is missing', async () => {
    const { user, link } = await invitedUser(h)
    expect((await asked(user.username)).cause).to.equal('sent')
    expectPage(await choose(h, link, 'a first password'), 200, 'accept-invitation', 'done')
    await isIdle(h)
    const { cause, advice } = await asked(user.username)
    expect(cause).to.equal('has_password')
    expect(advice).to.include(`account-flows user send-reset --id ${user.id}`)
  })

  it('disabled, whatever else is so', async () => {
    const user = await addUser({ disabled: true, emailVerified: false })
    expect(await asked(user.email)).to.include({ id: user.id, cause: 'disabled' })
  })

  it('blocked: the first thing that support reads, until another password is set', async () => {
    const user = await addUser()
    await h.put({ password_changed_email: 'true' })
    await h.flows.passwordChanged(user.id)
    await isIdle(h)
    await h.put({ password_changed_email: 'false' })
    expectPage(await disown(await notMeLink(h, user)), 200, 'not-me', 'secured')
    const status = await asked(user.email)
    expect(status.cause).to.equal('blocked')
    expect(status.summary).to.match(/"This wasn't me".* the password is blocked/)
    expect(status.advice).to.include(`account-flows user send-reset --id ${user.id}`)
    await h.reset(await h.resetLink(user), 'quite another password')
    await isIdle(h)
    expect((await asked(user.email)).cause).to.equal('sent')
  })

  it('limited', async () => {
    const user = await addUser()
    await h.put({ mails_per_account_per_hour: '1' })
    const first = await adminOf(h).sendReset({ id: user.id })
    await outcomeOf(h, first.mail_id, 'sent')
    expect((await asked(user.email)).cause).to.equal('sent')
    const second = await adminOf(h).sendReset({ id: user.id })
    await outcomeOf(h, second.mail_id, 'ended')
    const status = await asked(user.email)
    expect(status.cause).to.equal('limited')
    expect(status.advice).to.include('mails_per_account_per_hour')
    await h.put({ mails_per_account_per_hour: '1000' })
  })

  it('an address that no mail can be sent to, though another one is there by now', async () => {
    const user = await addUser()
    const { mail_id: id } = await adminOf(h).sendReset({ id: user.id })
    await outcomeOf(h, id, 'sent')
    const failure = {
      id: `mail_failed:${id}:2`,
      type: 'password_reset_mail_failed' as const,
      at: new Date(),
      accountId: user.id,
      reason: 'ERR_MAIL_ADDRESS' as const,
      details: {},
    }
    expect(await h.store.audit.record(failure, 3_600_000)).to.equal(true)
    const status = await asked(user.email)
    expect(status.cause).to.equal('bad_address')
    expect(status.summary).to.include('no mail could be sent to its address')
    expect(status.advice).to.match(/^Correct the address/)
    const again = await adminOf(h).sendReset({ id: user.id })
    await outcomeOf(h, again.mail_id, 'sent')
    expect((await asked(user.email)).cause).to.equal('sent')
  })

  it('refused, with step, code and the words of the mail server, but for the address', async () => {
    const user = await addUser()
    answers.set(user.email, 'refuse')
    const id = await failedReset(user)
    const status = await asked(user.email)
    expect(status.cause).to.equal('refused')
    expect(status.summary).to.match(/for good: "550 .*No such mailbox: <…>" at RCPT TO\.$/)
    expect(status.advice).to.match(/^Check the address\. /)
    expect(status.advice).to.include(`When this is fixed: account-flows outbox retry ${id}`)
    expect(status.advice).to.include(`account-flows doctor --to ${user.email}`)
    expect(lastFailure(user)?.details).to.include({ step: 'RCPT TO' })
    expect(JSON.stringify(eventsOf(h, 'password_reset_mail_failed', user))).to.not.include('@')
    answers.delete(user.email)
    await adminOf(h).retryMails({ id })
    await outcomeOf(h, id, 'sent')
    expect((await asked(user.email)).cause).to.equal('sent')
  })

  it('refused for what is no fault of the address, which stays out in any spelling of it', async () => {
    const user = await addUser()
    const port = String(h.mail.port)
    const denied = answersAt('RCPT', '550 5.7.1 relay denied for refused%40example.com')
    const server = await startFaultySmtp({ fault: denied })
    await h.put({ smtp_port: String(server.port) })
    const id = await failedReset(user)
    const status = await asked(user.email)
    expect(status.cause).to.equal('refused')
    expect(status.summary).to.match(/for good: "550 5\.7\.1 relay denied for …" at RCPT TO\.$/)
    expect(status.advice).to.match(/^Ask the operator of the mail server\. /)
    expect(JSON.stringify(eventsOf(h, 'password_reset_mail_failed', user))).to.not.include('%40')
    await h.put({ smtp_port: port })
    await server.close()
    await adminOf(h).purgeMails({ id })
  })

  it('refused for now, and when it is tried again', async () => {
    const user = await addUser()
    answers.set(user.email, 'defer')
    const id = await failedReset(user)
    const status = await asked(user.email)
    expect(status.cause).to.equal('refused')
    expect(status.summary).to.match(/now: "451 .*Try again later" at RCPT TO\.$/)
    expect(status.advice).to.match(/The next attempt is at \d{4}-/)
    answers.delete(user.email)
    await adminOf(h).purgeMails({ id })
  })

  it('refused after its data: codes alone, as the server has seen the link and quotes it (LOG-02)', async () => {
    const user = await addUser()
    answers.set(user.email, 'defer after data')
    const id = await failedReset(user)
    const status = await asked(user.email)
    expect(status.summary).to.match(/now: 451 at DATA\.$/)
    expect(status.advice).to.include(`account-flows mail test --to ${user.email}`)
    for (const { details } of eventsOf(h, 'password_reset_mail_failed', user))
      expect(details).to.have.keys('step', 'code')
    answers.delete(user.email)
    await adminOf(h).purgeMails({ id })
  })

  it('mail server down', async () => {
    const user = await addUser()
    const port = String(h.mail.port)
    await h.put({ smtp_port: String(await freePort()) })
    const id = await failedReset(user)
    const status = await asked(user.email)
    expect(status.cause).to.equal('mail_server_down')
    expect(status.summary).to.match(/could not be used .*: ECONNREFUSED while connecting\.$/)
    await h.put({ smtp_port: port })
    await adminOf(h).purgeMails({ id })
  })

  it('mail server down, and whoever asks again is too early: no mail came that could be used', async () => {
    const user = await addUser()
    const port = String(h.mail.port)
    await h.put({ resend_cooldown: '1h', smtp_port: String(await freePort()) })
    const first = await failedReset(user)
    const { mail_id } = await adminOf(h).sendReset({ id: user.id })
    await outcomeOf(h, mail_id, 'ended')
    const waits = await asked(user.email)
    expect(waits.cause).to.equal('mail_server_down')
    expect(waits.advice).to.match(/The next attempt is at \d{4}-/)
    await adminOf(h).purgeMails({ id: first })
    expect((await asked(user.email)).cause).to.equal('mail_server_down')
    await h.put({ resend_cooldown: '0s', smtp_port: port })
    const again = await adminOf(h).sendReset({ id: user.id })
    await outcomeOf(h, again.mail_id, 'sent')
    expect((await asked(user.email)).cause).to.equal('sent')
  })

  it('a reason that is gone is not told as if it were so still', async () => {
    const admin = adminOf(h)
    const ended = async (user: User, ask: 'sendReset' | 'sendVerification') => {
      const { mail_id } = await admin[ask]({ id: user.id })
      await eventually('it ended', async () =>
        ['ended', 'dead'].includes((await admin.mailOutcome({ mail_id })).state),
      )
    }
    await h.put({ reset_requires_verified_email: 'true' })
    const gina = await addUser({ emailVerified: false })
    await ended(gina, 'sendReset')
    const held = await asked(gina.email)
    expect(held.cause).to.equal('unverified')
    expect(held.advice)
      .to.include(`account-flows user verify --id ${gina.id}`)
      .and.not.include('with the username')
    await admin.verifyUser({ id: gina.id })
    const free = await asked(gina.email)
    expect(free.cause).to.equal('changed')
    expect(free.summary).to.match(/was not verified\. This is no longer so\.$/)
    await ended(gina, 'sendVerification')
    expect((await asked(gina.email)).cause).to.equal('verified')
    await admin.unverifyUser({ id: gina.id })
    expect((await asked(gina.email)).cause).to.equal('changed')
    await h.put({ reset_requires_verified_email: 'false' })

    const none = await addUser({ passwordHash: undefined })
    await ended(none, 'sendReset')
    expect((await asked(none.email)).cause).to.equal('no_password')
    await h.changeUser(none, { passwordHash: gina.passwordHash })
    expect((await asked(none.email)).cause).to.equal('changed')

    const off = await addUser({ disabled: true })
    await ended(off, 'sendReset')
    expect((await asked(off.email)).cause).to.equal('disabled')
    await h.changeUser(off, { disabled: false })
    const on = await asked(off.email)
    expect(on.cause).to.equal('changed')
    expect(on.advice).to.include(`account-flows user send-reset --id ${off.id}`)
  })

  it('whoever asked with an address before it was verified is told to ask again', async () => {
    const user = await addUser({ emailVerified: false })
    // As a phone writes it.
    await h.forgot(`${user.email.replace('p', 'P')} `)
    await isIdle(h)
    expect((await asked(user.email)).summary).to.match(/somebody typed it at \S+ and got no/)
    await adminOf(h).verifyUser({ id: user.id })
    expect((await asked(user.email)).cause).to.equal('changed')
    await h.forgot(user.email)
    await h.mail.mailTo(user.email)
    await isIdle(h)
    expect((await asked(user.email)).cause).to.equal('sent')
  })

  it('one verified address of two accounts names neither: told of both, the refusal first', async () => {
    const email = 'shared@users.example'
    const one = await addUser({ email })
    const both = [one, await addUser({ email })]
    for (const { id } of both)
      expect((await adminOf(h).userStatus({ id })).cause).to.equal('ambiguous')
    await h.forgot(email)
    await isIdle(h)
    for (const { id } of both) {
      const status = await adminOf(h).userStatus({ id })
      expect(status.cause).to.equal('ambiguous')
      expect(status.summary).to.match(/somebody typed it at \S+ and got no mail/)
    }
    const { stdout, exitCode } = await cli.run(['user', 'status', email])
    expect(exitCode).to.equal(1)
    expect(stdout).to.match(/^Several accounts match\. /)
    expect(mailsTo(h, one)).to.equal(0)
    await h.forgot(one.username)
    await h.mail.mailTo(email)
    await isIdle(h)
    expect((await adminOf(h).userStatus({ id: one.id })).cause).to.equal('sent')
  })

  it('when it is tried again is told of the mail that failed, and of no other', async () => {
    const user = await addUser({ emailVerified: false })
    answers.set(user.email, 'defer')
    const { mail_id } = await adminOf(h).sendVerification({ id: user.id })
    await eventually('an attempt failed', async () =>
      h.events.some(({ id }) => id.startsWith(`mail_failed:${mail_id}:1:`)),
    )
    answers.set(user.email, 'refuse')
    const reset = await failedReset(user)
    await outcomeOf(h, reset, 'dead')
    const { advice } = await asked(user.email)
    expect(advice).to.include(`account-flows outbox retry ${reset}`).and.not.include('tried again')
    answers.delete(user.email)
    for (const id of [mail_id, reset]) await adminOf(h).purgeMails({ id })
  })

  it('sent, with the Message-ID and the queue id by which the mail server knows it, and no token', async () => {
    const user = await addUser()
    const { mail_id } = await adminOf(h).sendReset({ id: user.id })
    const { mail, link } = await h.mail.mailTo(user.email)
    await outcomeOf(h, mail_id, 'sent')
    const status = await asked(user.email)
    expect(status.cause).to.equal('sent')
    const details = eventsOf(h, 'password_reset_mail_sent', user).at(-1)?.details
    expect(details?.message_id).to.equal(mail.messageId)
    expect(details?.queue_id).to.match(/^4F\d+Qx$/)
    expect(status.advice).to.include(`${details?.message_id}, queue id ${details?.queue_id}`)
    expect(JSON.stringify([status, h.events])).to.not.include(tokenOf(link))
  })

  it('nobody asked', async () => {
    const user = await addUser()
    const status = await asked(user.email)
    expect(status.cause).to.equal('not_asked')
    expect(status.advice).to.include(`account-flows user send-reset --id ${user.id}`)
  })

  it('several accounts of one address: all are told, and each look is audited', async () => {
    const email = 'family@users.example'
    const one = await addUser({ email })
    const other = await addUser({ email: 'Family@users.example', emailVerified: false })
    const refusal = await refusalOf(adminOf(h).userStatus({ user: email }))
    expect(refusal.code).to.equal('ambiguous_account')
    expect(refusal.candidates?.map(({ id }) => id)).to.have.members([one.id, other.id])
    const actions = actionsOf(h, 'user_status').length
    const { exitCode, stdout } = await cli.run(['user', 'status', email])
    expect(exitCode).to.equal(1)
    for (const { id, username } of [one, other])
      expect(stdout).to.match(new RegExp(`^id +${id}\nusername +${username}$`, 'm'))
    expect(actionsOf(h, 'user_status')).to.have.length(actions + 2)
  })

  it('names stand beside ids in lists of mails and events', async () => {
    const user = await addUser({ disabled: true })
    const { mail_id } = await adminOf(h).sendReset({ id: user.id })
    await outcomeOf(h, mail_id, 'dead')
    const { stdout: mails } = await cli.done(['outbox', 'list', '--account', user.id])
    expect(mails).to.include(`${user.username} (${user.id})`)
    const { stdout: events } = await cli.done(['audit', 'tail', '--account', user.id])
    expect(events).to.include(`account=${user.id}  username=${user.username}`)
    await adminOf(h).purgeMails({ id: mail_id })
  })

  it('users of a host without findByEmail are found by verified addresses, and the answer says so', async () => {
    const { findByEmail: _, ...users } = memoryUsers()
    const bare = await startHarness({ flows: { users } })
    const user: User = {
      id: 'u1',
      username: 'eve',
      email: 'eve@users.example',
      emailVerified: false,
      passwordHash: undefined,
      disabled: false,
    }
    users.add(user)
    const refusal = await refusalOf(adminOf(bare).userStatus({ user: 'eve@users.example' }))
    expect(refusal.title).to.include('Did you mean this one?')
    users.add({ ...user, username: 'other' })
    const unknown = await refusalOf(adminOf(bare).userStatus({ user: 'eve@users.example' }))
    expect(unknown.title).to.include('an unverified address finds no account here')
    users.add({ ...user, emailVerified: true })
    expect((await adminOf(bare).userStatus({ user: 'eve@users.example' })).id).to.equal('u1')
    await bare.close()
  })
})
