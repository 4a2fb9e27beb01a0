import { expect } from 'chai'
import type { User } from '../../src/index.ts'
import type * as AdminApi from '../../src/admin/client.ts'
import { actionsOf, changesNothing, outcomeOf, refusalOf, suiteAdmin } from '../support/admin.ts'
import { cliOf } from '../support/cli.ts'
import { eventually } from '../support/eventually.ts'
import { expectPage } from '../support/user-agent.ts'
import { answers, startFaultySmtp, type MailAnswer } from '../support/mail-server.ts'
import { freePort } from '../support/serve.ts'
import { codeIn, disown, tokenOf, type Person } from '../support/person.ts'
import { suiteHarness } from '../support/harness.ts'

describe('"I never got the mail": user status answers with the cause and what to do', () => {
  const h = suiteHarness()
  const admin = suiteAdmin(h)
  const cli = cliOf(h)

  async function addUser(user: Partial<User> = {}): Promise<Person & { email: string }> {
    const person = await h.addVerified(user)
    return Object.assign(person, { email: person.email ?? '' })
  }

  /** Without points and line breaks. */
  const bare = (text: string) => text.replace(/[.\s]+/g, ' ').trim()

  /** By the address alone, as the command line tells it first, with the address in its commands, and the API in its fields. */
  async function expectCause(
    { email }: { email: string },
    cause: string,
    advice = '',
  ): Promise<AdminApi.UserStatus> {
    const status = await admin.userStatus({ user: email })
    const { stdout } = await cli.done(['user', 'status', email])
    const { id, summary, email_verified: isName } = status
    const steps = isName ? status.advice.replaceAll(`--id ${id}`, email) : status.advice
    expect(bare(stdout.split('\n\n')[0] ?? '')).to.equal(bare(`${summary} ${steps}`))
    expect(status.cause).to.equal(cause)
    expect(status.advice).to.include(advice)
    return status
  }

  /** Asks for a mail, and waits until nothing more becomes of it. */
  async function mailAsked({ id }: User, ask: 'sendReset' | 'sendVerification' = 'sendReset') {
    const { mail_id } = await admin[ask]({ id })
    return eventually('nothing more becomes of it', async () => {
      const outcome = await admin.mailOutcome({ mail_id })
      return ['sent', 'ended', 'dead'].includes(outcome.state) && outcome
    })
  }

  /** Asks with what was typed, and waits until nothing more becomes of it. */
  async function forgot(typed: string) {
    await h.forgot(typed)
    await h.isIdle()
  }

  /** Asks for a mail that cannot be sent: its first attempt failed. */
  async function failed({ id }: User, ask: 'sendReset' | 'sendVerification' = 'sendReset') {
    const { mail_id } = await admin[ask]({ id })
    await eventually('an attempt failed', async () =>
      h.events.some(({ id }) => id.startsWith(`mail_failed:${mail_id}:1:`)),
    )
    return mail_id
  }

  const send = (what: string, { id }: User) => `account-flows user ${what} --id ${id}`

  it('misspelt: blanks, case, an address for a name; what exists is told, and nothing is done; nobody asked for a mail', async () => {
    const carol = await addUser({ username: 'carol' })
    const Dora = await addUser({ username: 'Dora', emailVerified: false })
    const McDonald = await addUser({ username: 'McDonald' })
    const meant = new Map<string, User>([['mcdonald', McDonald]])
    const ofCarol = [' carol', 'Carol', 'CAROL ', 'carol@elsewhere.example']
    for (const typed of ofCarol) meant.set(typed, carol)
    for (const typed of ['dora', 'DORA', `${Dora.email} `]) meant.set(typed, Dora)
    await changesNothing(h, async () => {
      for (const [typed, { id, username }] of meant) {
        const refusal = await refusalOf(admin.userStatus({ user: typed }))
        expect(refusal).to.deep.include({ code: 'unknown_account', candidates: [{ id, username }] })
        const { stderr } = await cli.run(['user', 'status', typed])
        expect(stderr).to.match(/^There is no account .* Did you mean this one\?\n/)
        expect(stderr).to.match(new RegExp(`^${id} +${username}$`, 'm'))
      }
      for (const other of ['carl', 'car', 'carolx', 'c\u0430rol', '@', ' ']) {
        const refusal = await refusalOf(admin.userStatus({ user: other }))
        expect(refusal, other).to.not.have.property('candidates')
      }
      // What does something takes no address that nobody verified, and says whose it is.
      for (const call of ['sendReset', 'verifyUser'] as const) {
        const { title, candidates } = await refusalOf(admin[call]({ user: Dora.email }))
        expect(title).to.match(/^This address is not verified, so it names no account\./)
        expect(candidates).to.deep.equal([{ id: Dora.id, username: 'Dora' }])
      }
      expect(await Dora.isVerified()).to.equal(false)
    })
    const nobodyAsked = await expectCause(carol, 'not_asked', send('send-reset', carol))
    expect(nobodyAsked.id).to.equal(carol.id)
  })

  it('unverified: found by its address in either case, told who asked with it, and, once it is verified, to ask again', async () => {
    const user = await addUser({ emailVerified: false })
    const before = await expectCause({ email: user.email.toUpperCase() }, 'unverified')
    expect(before.id).to.equal(user.id)
    expect(before.summary).to.include('must type the username')
    // As a phone writes it.
    await forgot(`${user.email.replace('p', 'P')} `)
    const after = await expectCause(user, 'unverified', send('send-verification', user))
    expect(after.summary).to.match(/a request with it at \S+ got no mail/)
    await admin.verifyUser({ id: user.id })
    await expectCause(user, 'changed')
    await forgot(user.email)
    await expectCause(user, 'sent')
  })

  it('unverified, where a mailed link verifies only during a login: not told to mail one, as it would verify nothing', async () => {
    const strict = {
      email_link_confirmation: 'other_browser',
      reset_requires_verified_email: 'true',
    }
    await h.put(strict)
    const user = await addUser({ emailVerified: false })
    const { advice } = await expectCause(user, 'unverified', send('verify', user))
    expect(advice).not.to.include('send-verification')
    await h.put({ email_link_confirmation: 'off', reset_requires_verified_email: 'false' })
    await expectCause(user, 'unverified', send('send-verification', user))
  })

  it('no password, and its address not verified: neither another request nor a verification helps; or disabled, whatever else is so', async () => {
    const user = await addUser({ passwordHash: undefined, emailVerified: false })
    await expectCause(user, 'no_password', send('invite', user))
    await forgot(user.email)
    await expectCause(user, 'no_password', send('invite', user))
    await user.becomes({ disabled: true })
    await expectCause(user, 'disabled')
  })

  it('no password, but it may choose one: told to ask, until its link was sent; its hint says so', async () => {
    const user = await addUser({ passwordHash: undefined })
    await forgot(user.email)
    await expectCause(user, 'no_password', send('invite', user))
    await user.becomes({ mayChoosePassword: true })
    const { summary, hints } = await expectCause(user, 'changed', send('send-reset', user))
    expect(summary).to.match(/got no mail: the account had no password, and could not choose one\./)
    expect(summary).to.match(/This is no longer so\.$/)
    expect(hints.join()).to.match(/has no password: a request for a reset mails a link/)
    await forgot(user.email)
    await expectCause(user, 'sent')
    const fresh = await addUser({ passwordHash: undefined, mayChoosePassword: true })
    await expectCause(fresh, 'not_asked', send('send-reset', fresh))
  })

  it('no password, and it may choose one, but its address is not verified: that is the cause', async () => {
    const more = { mayChoosePassword: true }
    const user = await addUser({ passwordHash: undefined, emailVerified: false, ...more })
    const held = await expectCause(user, 'unverified', send('send-verification', user))
    expect(held.summary).to.match(
      /not verified: it gets no reset link \(the account has no password\)\.$/,
    )
    expect(held.hints.join()).to.include(held.summary)
    expect(held.advice).to.include('Verify it before the person asks again')
    expect(await mailAsked(user)).to.include({ state: 'ended', reason: 'not_verified' })
    await expectCause(user, 'unverified', send('send-verification', user))
    await user.becomes({ mayChoosePassword: false })
    await expectCause(user, 'no_password', send('invite', user))
    await user.becomes({ ...more, emailVerified: true })
    const { summary } = await expectCause(user, 'changed')
    expect(summary).to.match(/the address was not verified\. This is no longer so\.$/)
    expect(await mailAsked(user)).to.include({ state: 'sent' })
  })

  it('no password, signs in elsewhere, not verified: told to sign in there, and not to verify an address that gets no link', async () => {
    const elsewhere = { passwordHash: undefined, signsInElsewhere: 'Google' }
    const user = await addUser({ ...elsewhere, emailVerified: false })
    const { advice } = await expectCause(user, 'no_password', 'for example with Google. ')
    expect(advice).not.to.include('send-verification')
    expect(await mailAsked(user)).to.include({ state: 'dead', reason: 'no_password' })
    await user.becomes({ emailVerified: true })
    expect(await mailAsked(user)).to.include({ state: 'sent' })
  })

  it('no password, and where it signs in is named since: its next request gets a mail, but no link is promised', async () => {
    const user = await addUser({ passwordHash: undefined })
    await mailAsked(user)
    await user.becomes({ signsInElsewhere: 'Google' })
    const { summary, advice } = await expectCause(user, 'changed', 'the other way, for example')
    expect(summary).to.match(/had no password, and could not choose one\. This is no longer so\.$/)
    expect(advice)
      .to.include('with Google. ')
      .and.not.match(/send a link|send-reset/)
    for (const signsInElsewhere of [null, ' ', 7]) {
      await user.becomes({ signsInElsewhere: signsInElsewhere as never })
      await expectCause(user, 'no_password', 'for example with Google. ')
    }
  })

  it('no password, and it signs in elsewhere: where; none of its mails is called a link', async () => {
    const user = await addUser({ passwordHash: undefined, signsInElsewhere: 'Google' })
    const before = await expectCause(
      user,
      'no_password',
      'the other way, for example with Google. ',
    )
    expect(before.summary).to.match(/mails that it signs in with Google, and no link\.$/)
    expect(before.hints.join()).to.include(before.summary)
    expect(await mailAsked(user)).to.include({ state: 'sent' })
    const after = await expectCause(user, 'no_password', send('invite', user))
    expect(after.summary).to.equal(before.summary)
    expect(after.links).to.deep.equal([])
    h.mail.answers.set(user.email, 'refuse')
    await mailAsked(user)
    const { summary } = await expectCause(user, 'refused')
    expect(summary).to.match(/refused the last mail about a reset for good/)
    h.mail.answers.delete(user.email)
    await mailAsked(user)
    await user.becomes({ mayChoosePassword: true })
    const since = await expectCause(user, 'changed', send('send-reset', user))
    expect(since.summary).to.match(/got no link: the account had no password, and could not choose/)
    await mailAsked(user)
    await expectCause(user, 'sent')
    await user.becomes({ mayChoosePassword: false })
    await expectCause(user, 'no_password', send('invite', user))
  })

  it('a password, once the invitation was used: its mail is not the one that is missing', async () => {
    const user = await h.addImported()
    await user.isInvited()
    await expectCause({ email: user.username }, 'sent')
    await user.choosesPassword('a first password')
    await user.sees('accept-invitation', 'done')
    await h.isIdle()
    await expectCause({ email: user.username }, 'has_password', send('send-reset', user))
  })

  it('blocked: the first thing that support reads, until another password is set', async () => {
    const user = await addUser()
    await h.put({ password_changed_email: 'true' })
    await h.flows.passwordChanged(user.id)
    await h.isIdle()
    await h.put({ password_changed_email: 'false' })
    expectPage(await disown(await user.notMeLink()), 200, 'not-me', 'secured')
    const { summary } = await expectCause(user, 'blocked', send('send-reset', user))
    expect(summary).to.match(/"This wasn't me".* the password is blocked/)
    await user.getsBackIn()
    await h.isIdle()
    await expectCause(user, 'sent')
  })

  it('verified, once the link in the last mail was used: there is nothing that could be missing', async () => {
    const user = await addUser({ emailVerified: false })
    await mailAsked(user, 'sendVerification')
    await expectCause({ email: user.username }, 'sent')
    await user.opensLink((await h.mail.mailTo(user.email)).link)
    await expectCause(user, 'verified', 'Ask the person to sign in.')
    await admin.unverifyUser({ id: user.id })
    await expectCause({ email: user.username }, 'sent')
  })

  it('another address that the person typed, while its mailbox is not proven: support verifies no mistyped one', async () => {
    const user = await addUser({ emailVerified: false, mayReplaceEmail: true })
    const login = await h.blockedLogin({ user })
    const email = `right-${user.email}`
    const blocked = await login.goesOn({ action: 'replace_email', email })
    const { mail } = await h.mail.mailTo(email)
    await h.isIdle()
    const cause = { email: user.username }
    await expectCause(cause, 'other_address', 'Do not verify the address of the account')
    expect(await mailAsked(user)).to.include({ reason: 'other_address' })
    await expectCause(cause, 'other_address')
    const { links } = await admin.userStatus({ user: user.username })
    expect(links.map(({ state }) => state)).to.deep.equal(['live', 'void'])
    const there = Object.assign(login, { blocked, code: codeIn(mail) })
    await there.comesBack(await there.types())
    await expectCause({ email }, 'changed', 'send-reset')
  })

  it('limited: its mails of an hour were sent, and the link in the last one works', async () => {
    const user = await addUser()
    await h.put({ mails_per_account_per_hour: '1' })
    await mailAsked(user)
    await expectCause(user, 'sent')
    expect(await mailAsked(user)).to.include({ state: 'ended', reason: 'throttled' })
    expect(user.mailCount()).to.equal(1)
    await expectCause(user, 'limited', 'mails_per_account_per_hour')
    await h.put({ mails_per_account_per_hour: '1000' })
    const { link } = await h.mail.mailTo(user.email)
    expect((await h.reset(link, 'a brand new password')).mode).to.equal('done')
  })

  it('an address that no mail can be sent to, though another one is there by now', async () => {
    const user = await addUser()
    const { mail_id } = await mailAsked(user)
    const failure = {
      id: `mail_failed:${mail_id}:2`,
      type: 'password_reset_mail_failed' as const,
      at: new Date(),
      accountId: user.id,
      reason: 'ERR_MAIL_ADDRESS' as const,
      details: {},
    }
    expect(await h.store.audit.record(failure, 3_600_000)).to.equal(true)
    const { summary, advice } = await expectCause(user, 'bad_address')
    expect(summary).to.include('no mail could be sent to its address')
    expect(advice).to.match(/^Correct the address/)
    await mailAsked(user)
    await expectCause(user, 'sent')
  })

  const next = /The next attempt is at \d{4}-/
  /** How the mail server fails, what is said of it, and what is advised. */
  const failures: [what: string, fails: string, said: RegExp, advice: RegExp[]][] = [
    [
      'refused, with step, code and the words of the mail server, but for the address',
      'refuse',
      /for good: "550 .*No such mailbox: <…>" at RCPT TO\.$/,
      [/^Check the address\. /, /When this is fixed: account-flows outbox retry /, /doctor --to /],
    ],
    [
      'refused for what is no fault of the address, which stays out in any spelling of it',
      'relay denied',
      /for good: "550 5\.7\.1 relay denied for …" at RCPT TO\.$/,
      [/^Ask the operator of the mail server\. /],
    ],
    [
      'refused for now, and when it is tried again',
      'defer',
      /now: "451 .*Try again later" at RCPT TO\.$/,
      [next],
    ],
    [
      'refused after its data: codes alone, as the server has seen the link and quotes it (LOG-02)',
      'defer after data',
      /now: 451 at DATA\.$/,
      [/account-flows mail test --to /],
    ],
    ['down', 'down', /could not be used .*: ECONNREFUSED while connecting\.$/, [next]],
  ]
  for (const [what, fails, said, advice] of failures) {
    it(`${what}, until the mail leaves`, async () => {
      const user = await addUser()
      const denied = answers('RCPT', '550 5.7.1 relay denied for refused%40example.com')
      const server = await startFaultySmtp({ fault: denied })
      if (fails === 'relay denied') await h.put({ smtp_port: String(server.port) })
      else if (fails === 'down') await h.put({ smtp_port: String(await freePort()) })
      else h.mail.answers.set(user.email, fails as MailAnswer)
      const id = await failed(user)
      const cause = fails === 'down' ? 'mail_server_down' : 'refused'
      const status = await expectCause(user, cause)
      expect(status.summary).to.match(said)
      for (const each of advice) expect(status.advice).to.match(each)
      const told = user.events('password_reset_mail_failed')
      expect(JSON.stringify(told)).to.not.match(/@|%40/)
      if (fails === 'refuse') expect(told.at(-1)?.details).to.include({ step: 'RCPT TO' })
      if (fails === 'defer after data')
        for (const { details } of told) expect(details).to.have.keys('step', 'code')
      h.mail.answers.delete(user.email)
      await h.put({ smtp_port: String(h.mail.port) })
      await server.close()
      await admin.retryMails({ id })
      await outcomeOf(h, id, 'sent')
      await expectCause(user, 'sent')
    })
  }

  it('mail server down, and whoever asks again is too early: no mail came that could be used', async () => {
    const user = await addUser()
    await h.put({ resend_cooldown: '1h', smtp_port: String(await freePort()) })
    const first = await failed(user)
    expect((await mailAsked(user)).state).to.equal('ended')
    expect((await expectCause(user, 'mail_server_down')).advice).to.match(next)
    await admin.purgeMails({ id: first })
    await expectCause(user, 'mail_server_down')
    await h.put({ resend_cooldown: '0s', smtp_port: String(h.mail.port) })
    await mailAsked(user)
    await expectCause(user, 'sent')
  })

  it('a reason that is gone is not told as if it were so still', async () => {
    await h.put({ reset_requires_verified_email: 'true' })
    const gina = await addUser({ emailVerified: false })
    await mailAsked(gina)
    const held = await expectCause(gina, 'unverified', send('verify', gina))
    expect(held.advice).to.not.include('with the username')
    await admin.verifyUser({ id: gina.id })
    const { summary } = await expectCause(gina, 'changed')
    expect(summary).to.match(/was not verified\. This is no longer so\.$/)
    await mailAsked(gina, 'sendVerification')
    await expectCause(gina, 'verified')
    await admin.unverifyUser({ id: gina.id })
    await expectCause(gina, 'changed')
    await h.put({ reset_requires_verified_email: 'false' })

    for (const [cause, was, is] of [
      ['no_password', { passwordHash: undefined }, { passwordHash: gina.passwordHash }],
      ['disabled', { disabled: true }, { disabled: false }],
    ] as const) {
      const user = await addUser(was)
      await mailAsked(user)
      await expectCause(user, cause)
      await user.becomes(is)
      await expectCause(user, 'changed', send('send-reset', user))
    }
  })

  it('one verified address of two accounts names neither, the refusal first; all of that address are told, and each look is audited', async () => {
    const email = 'shared@users.example'
    const both = [await addUser({ email }), await addUser({ email })]
    const statuses = () => Promise.all(both.map(({ id }) => admin.userStatus({ id })))
    for (const { cause } of await statuses()) expect(cause).to.equal('ambiguous')
    await forgot(email)
    for (const { cause, summary } of await statuses()) {
      expect(cause).to.equal('ambiguous')
      expect(summary).to.match(/a request with it at \S+ got no mail/)
    }
    const third = await addUser({ email: 'Shared@users.example', emailVerified: false })
    const all = [...both, third]
    const { code, candidates } = await refusalOf(admin.userStatus({ user: email }))
    expect(code).to.equal('ambiguous_account')
    expect(candidates?.map(({ id }) => id)).to.have.members(all.map(({ id }) => id))
    const actions = actionsOf(h, 'user_status').length
    const { stdout } = await cli.ended(['user', 'status', email], 1)
    expect(stdout).to.match(/^Several accounts match\. /)
    for (const { id, username } of all)
      expect(stdout).to.match(new RegExp(`^id +${id}\nusername +${username}$`, 'm'))
    expect(actionsOf(h, 'user_status')).to.have.length(actions + 3)
    expect(h.mail.mails.filter(({ to }) => to.includes(email))).to.deep.equal([])
    await forgot(both[0]?.username ?? '')
    expect((await statuses())[0]?.cause).to.equal('sent')
  })

  it('when it is tried again is told of the mail that failed, and of no other', async () => {
    const user = await addUser({ emailVerified: false })
    h.mail.answers.set(user.email, 'defer')
    const verification = await failed(user, 'sendVerification')
    h.mail.answers.set(user.email, 'refuse')
    const { mail_id: reset } = await mailAsked(user)
    const { advice } = await expectCause(user, 'refused', `account-flows outbox retry ${reset}`)
    expect(advice).to.not.include('tried again')
    h.mail.answers.delete(user.email)
    for (const id of [verification, reset]) await admin.purgeMails({ id })
  })

  it('sent, with the Message-ID and the queue id by which the mail server knows it, and no token', async () => {
    const user = await addUser()
    await mailAsked(user)
    const { mail, link } = await h.mail.mailTo(user.email)
    const details = user.events('password_reset_mail_sent').at(-1)?.details
    expect(details?.message_id).to.equal(mail.messageId)
    expect(details?.queue_id).to.match(/^4F\d+Qx$/)
    const ids = `${details?.message_id}, queue id ${details?.queue_id}`
    const status = await expectCause(user, 'sent', ids)
    expect(JSON.stringify([status, h.events])).to.not.include(tokenOf(link))
  })

  it('names stand beside ids in lists of mails and events', async () => {
    const user = await addUser({ disabled: true })
    await mailAsked(user)
    const { stdout: mails } = await cli.done(['outbox', 'list', '--account', user.id])
    expect(mails).to.include(`${user.username} (${user.id})`)
    const { stdout: events } = await cli.done(['audit', 'tail', '--account', user.id])
    expect(events).to.include(`account=${user.id}  username=${user.username}`)
  })
})
