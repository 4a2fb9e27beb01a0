import { expect } from 'chai'
import { memoryUsers, type User, type UserStore } from '../../src/index.ts'
import { adminOf } from '../support/admin.ts'
import { eventually } from '../support/eventually.ts'
import { type Harness, PASSWORD, suiteHarness, type Technology } from '../support/harness.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { ask, shapeOf, usableRecord } from '../support/observe.ts'
import { disown, OTHER_HASH, type Person } from '../support/person.ts'
import { beforeFirst, instead } from '../support/records.ts'
import { moveTime } from '../support/time.ts'
import { createUserAgent, expectPage } from '../support/user-agent.ts'
import { expectTitle, words } from '../support/words.ts'

const NEW = 'a first password'
const PAGE = 'reset-password'
const HOUR_MS = 3_600_000
const CHOOSES = { passwordHash: undefined, mayChoosePassword: true }
const UNPROVEN = { emailVerified: false }
const ELSEWHERE = { passwordHash: undefined, signsInElsewhere: 'Google' }
const agent = createUserAgent()

const completed = (user: Person) => [
  ...user.events('password_reset_completed'),
  ...user.events('invitation_completed'),
]

const DONE = words['accept-invitation.done.title']
const oneLine = (text = '') => text.replaceAll(/\s+/g, ' ')

/** No password is set, and none was. */
async function expectNone(h: Harness, user: Person) {
  expect(await h.users.findById(user.id)).to.include({ passwordHash: undefined })
  expect(completed(user)).to.deep.equal([])
}

/** The example of users on PostgreSQL has neither field. */
function onEachUserStore(title: string, body: (technology: Technology) => void) {
  describe(`${title}, in memory`, () => body('memory'))
  describeWithMongo(`${title}, on MongoDB [full]`, () => body('mongodb'))
}

onEachUserStore('A user without a password who may choose one (3.7)', (technology) => {
  const h = suiteHarness({ technology, mayLogErrors: true })

  const userWithLink = () => h.userWithLink(CHOOSES)

  it('gets a link, which sets the first password once; sessions end, it is recorded as a reset, and the owner is told', async () => {
    await h.put({ password_changed_email: 'true' })
    const user = await h.addVerified()
    await user.signsIn()
    await user.becomes(CHOOSES)
    expect(await user.account()).to.equal(user.id)
    const link = await user.forgets()
    const record = await usableRecord(h, link)
    const { createdAt, expiresAt } = record ?? {}
    expect(Number(expiresAt) - Number(createdAt)).to.equal(HOUR_MS)
    await agent.request('HEAD', link)
    const form = await agent.get(link)
    expectPage(form, 200, PAGE, 'form')
    expectTitle(form, 'accept-invitation.title')
    expect(form.text).not.to.include(words['reset-password.password'])
    const refused = await user.choosesPassword(NEW, link, 'another one')
    expectPage(refused, 400, PAGE, 'password_mismatch')
    expectTitle(refused, 'accept-invitation.title')
    await expectNone(h, user)

    const mails = user.mailCount()
    const done = await user.choosesPassword(NEW, link)
    expectPage(done, 200, PAGE, 'done')
    expectTitle(done, 'accept-invitation.done.title')
    expect(done.headers.getSetCookie()).to.deep.equal([])
    expect(await user.hasPassword(NEW)).to.equal(true)
    expect(await user.isVerified()).to.equal(true)
    expect(await user.account()).to.equal(undefined)
    const { mail: notice, kind } = await user.mail(mails + 1)
    expect([kind, notice.subject]).to.deep.equal(['password_changed', DONE])
    for (const part of [oneLine(notice.text), String(notice.html)]) {
      expect(part).to.include(words['mail.password-changed.lead_first'])
      expect(part)
        .to.include('Chosen on ')
        .and.not.match(/was changed|Changed on/)
    }
    expect(user.events('password_reset_requested')).to.have.length(1)
    expect(user.events('password_reset_mail_sent')[0]?.details).to.not.have.property('link')
    expect(user.events('password_reset_completed')).to.have.length(1)
    expect(user.events('invitation_completed')).to.deep.equal([])
    await h.put({ password_changed_email: 'false' })

    for (const again of [await user.choosesPassword('another one', link), await agent.get(link)]) {
      expectPage(again, 400, PAGE, 'invalid')
      expectTitle(again, 'reset-password.invalid.used.title')
    }
    expect(await user.hasPassword(NEW)).to.equal(true)
    const usual = await user.opensLink(await user.forgets())
    expectTitle(usual, 'reset-password.title')
    await user.getsBackIn()
  })

  it('gets it by the address too, and only the newest link works', async () => {
    const { user, link } = await userWithLink()
    await h.forgot(user.email ?? '')
    const { link: newer } = await user.mail(2)
    await h.isIdle()
    const old = await user.choosesPassword(NEW, link)
    expectPage(old, 400, PAGE, 'invalid')
    expectTitle(old, 'reset-password.invalid.superseded.title')
    await expectNone(h, user)
    expectPage(await user.choosesPassword(NEW, newer), 200, PAGE, 'done')
  })

  const nothing: [what: string, reason: string, user: Partial<User>][] = [
    ['neither', 'no_password', {}],
    ['may choose none', 'no_password', { mayChoosePassword: false }],
    ['a place without a name', 'no_password', { signsInElsewhere: ' ' }],
    ['a place whose name shows nothing', 'no_password', { signsInElsewhere: '\u200b' }],
    ['a place that is no text', 'no_password', { signsInElsewhere: true as never }],
    ['a place without a name, unverified', 'no_password', { signsInElsewhere: ' ', ...UNPROVEN }],
    ['may, unverified', 'not_verified', { mayChoosePassword: true, ...UNPROVEN }],
    ['elsewhere, unverified', 'no_password', { signsInElsewhere: 'Google', ...UNPROVEN }],
    ['may, disabled', 'disabled', { mayChoosePassword: true, disabled: true }],
    ['elsewhere, disabled', 'disabled', { signsInElsewhere: 'Google', disabled: true }],
  ]
  for (const [what, reason, changes] of nothing) {
    it(`gets nothing, and the page of everybody, until the host allows it at a verified address: ${what} (PWD-21)`, async () => {
      const unknown = await ask(h, 'nobody-at-all')
      const user = await h.addVerified({ passwordHash: undefined, ...changes })
      for (const typed of [user.username, ...(user.emailVerified ? [user.email ?? ''] : [])]) {
        const asked = await ask(h, typed)
        expect(shapeOf(asked.answer)).to.deep.equal(shapeOf(unknown.answer))
        expect(asked.reason).to.equal(reason)
      }
      expect(user.mailCount()).to.equal(0)
      expect(await h.store.resetTokens.ofUser(user.id, 9)).to.deep.equal([])
      await expectNone(h, user)
      await user.becomes({ mayChoosePassword: true, emailVerified: true, disabled: false })
      expectPage(await user.choosesPassword(NEW, await user.forgets()), 200, PAGE, 'done')
      expect(await user.hasPassword(NEW)).to.equal(true)
    })
  }

  const changes: [what: string, change: Partial<User>][] = [
    ['has a password', { passwordHash: OTHER_HASH }],
    ['may choose none any more', { mayChoosePassword: false }],
    ['is not verified any more', { emailVerified: false }],
    ['has another address', { email: 'elsewhere@users.example' }],
    ['is disabled', { disabled: true }],
  ]
  for (const [what, change] of changes) {
    it(`has a void link once the account ${what} (PWD-21)`, async () => {
      const { user, link } = await userWithLink()
      await user.becomes(change)
      const before = await h.users.findById(user.id)
      for (const page of [
        await agent.get(link),
        await user.choosesPassword(NEW, link),
        await agent.get(link),
      ]) {
        expectPage(page, 400, PAGE, 'invalid')
        expectTitle(page, 'reset-password.invalid.changed.title')
        expect(page.text).to.include(words['accept-invitation.invalid.changed.lead'])
        expect(page.text).not.to.include(words['reset-password.invalid.again'])
      }
      expect(await h.users.findById(user.id)).to.deep.equal(before)
      expect(completed(user)).to.deep.equal([])
      const reason = change.passwordHash ? 'newer_password' : 'account_changed'
      if (!change.disabled) expect(user.events('password_reset_rejected', reason)).to.have.length(1)
      const { email } = user
      await user.becomes({ ...CHOOSES, email, emailVerified: true, disabled: false })
      expectPage(await agent.get(link), 400, PAGE, 'invalid')
      await user.getsBackIn()
    })
  }

  it('has a link that is void while the host withdraws its leave, and for good after endSessions (PWD-21)', async () => {
    const { user, link } = await userWithLink()
    for (const change of [{ mayChoosePassword: false }, UNPROVEN]) {
      await user.becomes(change)
      expectPage(await agent.get(link), 400, PAGE, 'invalid')
      await user.becomes({ ...CHOOSES, emailVerified: true })
      expectPage(await agent.get(link), 200, PAGE, 'form')
    }
    await user.becomes({ mayChoosePassword: false })
    await h.flows.endSessions(user.id)
    await user.becomes(CHOOSES)
    expectPage(await agent.get(link), 400, PAGE, 'invalid')
    expectPage(await user.choosesPassword(NEW, link), 400, PAGE, 'invalid')
    await expectNone(h, user)
    await user.getsBackIn()
  })

  it('has a void invitation while there is a password; once the host removed it, only endSessions ends the older link', async () => {
    const user = await h.addVerified(CHOOSES)
    const invitation = await user.isInvited()
    expectPage(await user.choosesPassword(NEW, await user.forgets()), 200, PAGE, 'done')
    expectPage(await agent.get(invitation), 400, 'accept-invitation', 'invalid')
    await user.becomes({ passwordHash: undefined })
    expectPage(await agent.get(invitation), 200, 'accept-invitation', 'form')
    await h.flows.endSessions(user.id)
    expectPage(await agent.get(invitation), 400, 'accept-invitation', 'invalid')
    await user.getsBackIn()
  })

  it('chooses none where its address stops being verified just after its link is claimed (PWD-22)', async () => {
    const { user, link } = await userWithLink()
    const thenUnproven =
      (claim: typeof h.store.resetTokens.claim): typeof claim =>
      async (...of) => {
        const claimed = await claim(...of)
        await user.becomes(UNPROVEN)
        return claimed
      }
    await instead(h.store.resetTokens, 'claim', thenUnproven, async () =>
      expectPage(await user.choosesPassword(NEW, link), 400, PAGE, 'invalid'),
    )
    expect(await user.isVerified()).to.equal(false)
    await expectNone(h, user)
    expect(user.events('password_reset_rejected', 'account_changed')).to.have.length(1)
    await user.becomes({ emailVerified: true })
    await user.getsBackIn()
  })

  for (const [what, change] of changes.filter(([, { mayChoosePassword, emailVerified }]) =>
    [mayChoosePassword, emailVerified].every((each) => each === undefined),
  )) {
    it(`chooses none where the account ${what} at the very moment that it is set (PWD-22)`, async () => {
      const { user, link } = await userWithLink()
      beforeFirst(h.users, 'setFirstPassword', () => user.becomes(change))
      expectPage(await user.choosesPassword(NEW, link), 400, PAGE, 'invalid')
      expect(await h.users.findById(user.id)).to.include(change)
      expect(await user.hasPassword(NEW)).to.equal(false)
      const reason = change.passwordHash ? 'newer_password' : 'account_changed'
      expect(user.events('password_reset_rejected', reason)).to.have.length(1)
      expect(completed(user)).to.deep.equal([])
      expectPage(await user.choosesPassword(NEW, link), 400, PAGE, 'invalid')
      const { email } = user
      await user.becomes({ ...CHOOSES, email, disabled: false })
      await user.getsBackIn()
    })
  }

  it('keeps an invitation beside it; of both at once, one sets the password, and the other is void (PWD-22)', async () => {
    for (let round = 0; round < 4; round += 1) {
      const user = await h.addVerified(CHOOSES)
      const invitation = await user.isInvited()
      const link = await user.forgets()
      expectPage(await agent.get(invitation), 200, 'accept-invitation', 'form')
      expectPage(await agent.get(link), 200, PAGE, 'form')
      const passwords = ['by the request', 'by the invitation']
      const answers = await Promise.all([
        user.in().choosesPassword('by the request', link),
        user.in().choosesPassword('by the invitation', invitation),
      ])
      const modes = answers.map(({ mode }) => mode)
      expect(modes).to.have.members(['done', 'invalid'])
      for (const [index, password] of passwords.entries())
        expect(await user.hasPassword(password), password).to.equal(modes[index] === 'done')
      expect(completed(user)).to.have.length(1)
      const rejected = [
        ...user.events('password_reset_rejected', 'newer_password'),
        ...user.events('invitation_rejected', 'newer_password'),
      ]
      expect(rejected).to.have.length(1)
      for (const each of [link, invitation]) expect((await agent.get(each)).status).to.equal(400)
      await user.getsBackIn()
    }
  })

  it('chooses one password by one link, of ten forms at once (PWD-22)', async () => {
    const { user, link } = await userWithLink()
    const passwords = Array.from({ length: 10 }, (_, form) => `a first password ${form}`)
    const answers = await Promise.all(
      passwords.map((password) => user.in().choosesPassword(password, link)),
    )
    const won = passwords.filter((_, form) => answers[form]?.mode === 'done')
    expect(won).to.have.length(1)
    expect(await user.hasPassword(won[0] ?? '')).to.equal(true)
    expect(completed(user)).to.have.length(1)
  })

  it('chooses none where a process dies after the claim, and the host takes its leave back (PWD-22)', async () => {
    const { user, link } = await userWithLink()
    const thenDies =
      (claim: typeof h.store.resetTokens.claim): typeof claim =>
      async (...of) => {
        await claim(...of)
        await user.becomes({ mayChoosePassword: false })
        throw new Error('the process dies')
      }
    await instead(h.store.resetTokens, 'claim', thenDies, async () =>
      expectPage(await user.choosesPassword(NEW, link), 500, 'error', 'error'),
    )
    await eventually('the maintenance rejects the reset', async () => {
      await moveTime(1_000)
      return user.events('password_reset_rejected', 'account_changed').at(0)
    })
    await expectNone(h, user)
    await user.becomes(CHOOSES)
    await user.getsBackIn()
  })

  it('is not told on an expired link that the password has not changed, and gets a new link by one click', async () => {
    const { user, link } = await userWithLink()
    await h.later(HOUR_MS)
    expectPage(await user.choosesPassword(NEW, link), 400, PAGE, 'invalid')
    await expectNone(h, user)
    const page = await user.opensLink(link)
    expectTitle(page, 'reset-password.invalid.expired.title')
    expect(page.text).not.to.include(words['reset-password.invalid.expired.lead'])
    expect(page.text).to.include(words['verify-email.expired.expired.lead'])
    expectPage(await user.presses('/forgot-password'), 200, 'forgot-password', 'sent')
    const { link: newer } = await user.mail(2)
    await h.isIdle()
    expectPage(await user.choosesPassword(NEW, newer), 200, PAGE, 'done')
  })

  it('voids the link by "This wasn’t me", and no invitation; of a used link, it blocks the password', async () => {
    const user = await h.addVerified(CHOOSES)
    const invitation = await user.isInvited()
    const link = await user.forgets()
    expectPage(await disown(await user.notMeLink()), 200, 'not-me', 'stopped')
    expectPage(await user.choosesPassword(NEW, link), 400, PAGE, 'invalid')
    await expectNone(h, user)
    expectPage(await agent.get(invitation), 200, 'accept-invitation', 'form')
    expectPage(await user.choosesPassword(NEW, await user.forgets()), 200, PAGE, 'done')
    expectPage(await disown(await user.notMeLink()), 200, 'not-me', 'secured')
    expect(await user.hasPassword(NEW)).to.equal(false)
    await user.getsBackIn()
  })

  it('reads in text and HTML that there is no password yet, and nothing of one that stays the same', async () => {
    const { user, link } = await userWithLink()
    const { mail, kind } = await user.mail()
    expect([mail.subject, kind]).to.deep.equal([words['accept-invitation.title'], 'password_reset'])
    for (const part of [oneLine(mail.text), String(mail.html)]) {
      expect(part).to.include(words['mail.password-reset.first'])
      expect(part).to.include(words['mail.invitation.not_you'])
      expect(part).to.include('The link works once, for 1 hour.')
      expect(part).not.to.include(words['mail.password-reset.not_you'])
      expect(part).not.to.include('Only the link in the latest email works.')
    }
    expect(oneLine(mail.text)).to.include(words['mail.invitation.open'])
    expect(mail.text?.split('\n').filter((line) => line === link)).to.have.length(1)
    expect(String(mail.html)).to.include(words['mail.invitation.button'])
  })
})

onEachUserStore('A user without a password who signs in elsewhere (3.7)', (technology) => {
  const h = suiteHarness({ technology })

  it('gets a mail without any link, in text and HTML, and the page of everybody; no token is made', async () => {
    const unknown = await ask(h, 'nobody-at-all')
    const user = await h.addVerified(ELSEWHERE)
    const asked = await ask(h, user.username)
    expect(asked.reason).to.equal(undefined)
    expect(shapeOf(asked.answer)).to.deep.equal(shapeOf(unknown.answer))
    const { mail, kind } = await user.mail(1)
    expect(mail.subject).to.equal(words['mail.signs-in-elsewhere.subject'])
    expect(kind).to.equal('password_reset')
    expect(mail.text?.split('\n')[0]).to.equal(mail.subject)
    for (const part of [oneLine(mail.text), String(mail.html)]) {
      expect(part).to.include(`Hello ${user.username},`)
      expect(part).to.include('You sign in with Google; there is no password to reset.')
      expect(part).to.include(words['mail.signs-in-elsewhere.not_you'])
      expect(part).not.to.match(/https?:|href|token|not-me|\blink\b/)
    }
    await h.isIdle()
    expect(user.events('password_reset_requested')).to.have.length(1)
    const [sent, ...others] = user.events('password_reset_mail_sent')
    expect([sent?.details?.link, others]).to.deep.equal(['none', []])
    expect(await h.store.resetTokens.ofUser(user.id, 9)).to.deep.equal([])
    await expectNone(h, user)
    const forgotten = await adminOf(h).forgetUser({ id: user.id })
    expect(forgotten).to.include({ reset_links: 0, not_me_links: 0 })
  })

  it('keeps the spare mail of its invitation', async () => {
    await h.put({ resend_cooldown: '1h' })
    const user = await h.addVerified(ELSEWHERE)
    await user.isInvited()
    await disown(await user.notMeLink())
    const invitation = await user.isInvited()
    await h.put({ resend_cooldown: '0s' })
    expectPage(await agent.get(invitation), 200, 'accept-invitation', 'form')
  })

  it('gets a link in its place where the host also allows a password', async () => {
    const user = await h.addVerified({ ...CHOOSES, ...ELSEWHERE })
    expectPage(await user.choosesPassword(NEW, await user.forgets()), 200, PAGE, 'done')
    expect(oneLine((await user.mail(1)).mail.text)).not.to.include('Google')
  })

  it('gets a usual reset while there is a password', async () => {
    const { user, link } = await h.userWithLink({ signsInElsewhere: 'Google' })
    expect((await user.mail(1)).mail.subject).to.equal(words['mail.password-reset.subject'])
    expect(await user.hasPassword(PASSWORD)).to.equal(true)
    const done = await user.choosesPassword(NEW, link)
    expectTitle(done, 'reset-password.done.title')
  })

  it('gets no spare beyond the limits, and the next mail once they allow it', async () => {
    await h.put({ resend_cooldown: '1h' })
    const user = await h.addVerified(ELSEWHERE)
    expect((await ask(h, user.username)).reason).to.equal(undefined)
    expect((await ask(h, user.username)).reason).to.equal('throttled')
    expect(user.mailCount()).to.equal(1)
    await h.later(HOUR_MS)
    expect((await ask(h, user.username)).reason).to.equal(undefined)
    await user.mail(2)
    await h.put({ resend_cooldown: '0s' })
  })
})

describe('The mail to a user who signs in elsewhere, with a brand (3.7)', () => {
  const h = suiteHarness({ flows: { brand: { name: 'Acme' } } })

  it('says to what the user signs in, in the language of the request or the user', async () => {
    const user = await h.addVerified({ ...ELSEWHERE, locale: 'de' })
    await h.forgot(user.username, { ui_locales: 'en' })
    const { mail } = await user.mail(1)
    for (const part of [oneLine(mail.text), String(mail.html)])
      expect(part).to.include('You sign in to Acme with Google; there is no password to reset.')
    expect(mail.text?.split('\n')[0]).to.equal(`Acme · ${words['mail.signs-in-elsewhere.subject']}`)
    await h.forgot(user.username)
    const { mail: german } = await user.mail(2)
    expect(oneLine(german.text)).to.include('Sie melden sich bei Acme mit Google an')
  })
})

describe('A host whose users cannot set a first password (3.7)', () => {
  const user = { emailVerified: true, disabled: false, ...CHOOSES }
  const { setFirstPassword: _none, ...users } = memoryUsers([
    { id: '1', username: 'ann', email: 'ann@users.example', ...user },
    { id: '2', username: 'ben', email: 'ben@users.example', ...user, ...ELSEWHERE },
  ])
  const h = suiteHarness({ flows: { users } })

  it('mails no link that could not work, but where the user signs in', async () => {
    expect((await ask(h, 'ann')).reason).to.equal('no_password')
    expect((await ask(h, 'ben')).reason).to.equal(undefined)
    const { mail } = await h.mail.mailTo('ben@users.example')
    expect(oneLine(mail.text)).to.include('You sign in with Google')
    expect(h.mail.mails).to.have.length(1)
  })
})

for (const none of ['', null]) {
  describe(`A host that has ${JSON.stringify(none)} where there is no password (3.7)`, () => {
    const verified = { emailVerified: true, disabled: false, passwordHash: undefined }
    const kept = memoryUsers([
      { id: '1', username: 'ann', email: 'ann@users.example', ...verified, ...CHOOSES },
      { id: '2', username: 'ben', email: 'ben@users.example', ...verified, ...ELSEWHERE },
      { id: '3', username: 'cid', email: 'cid@users.example', ...verified },
      { id: '4', username: 'dot', email: 'dot@users.example', ...verified, ...UNPROVEN },
    ])
    const asRows = (found: User[]): User[] =>
      found.map((user) => ({ ...user, passwordHash: user.passwordHash ?? (none as never) }))
    const asRow = (user: User | undefined) => asRows(user ? [user] : [])[0]
    const users: UserStore = {
      ...kept,
      findById: async (id) => asRow(await kept.findById(id)),
      findByUsername: async (name) => asRow(await kept.findByUsername(name)),
      findByUsernameInAnyCase: async (name) =>
        asRows((await kept.findByUsernameInAnyCase?.(name)) ?? []),
      findByVerifiedEmail: async (email) => asRows(await kept.findByVerifiedEmail(email)),
    }
    const h = suiteHarness({ flows: { users } })
    const hashesOf = () =>
      Promise.all(['1', '2', '3', '4'].map(async (id) => (await kept.findById(id))?.passwordHash))

    it('mails a link for the first password alone, where it is allowed; no other account gets one (PWD-21)', async () => {
      expect((await ask(h, 'cid')).reason).to.equal('no_password')
      expect((await ask(h, 'dot')).reason).to.equal('no_password')
      expect((await ask(h, 'ben')).reason).to.equal(undefined)
      const { mail } = await h.mail.mailTo('ben@users.example')
      expect(oneLine(mail.text))
        .to.include('You sign in with Google')
        .and.not.match(/https?:/)
      expect((await ask(h, 'ann')).reason).to.equal(undefined)
      const { link } = await h.mail.mailTo('ann@users.example')
      expect(h.mail.mails).to.have.length(2)
      expect(await hashesOf()).to.deep.equal([undefined, undefined, undefined, undefined])
      expectTitle(await agent.get(link), 'accept-invitation.title')
      expectPage(await h.reset(link, NEW), 200, PAGE, 'done')
      const [first, ...others] = await hashesOf()
      expect(first).to.match(/^\$2/)
      expect(others).to.deep.equal([undefined, undefined, undefined])
    })

    it('invites such an account, whose status says that it has no password', async () => {
      expect(await h.flows.invite('3')).to.have.keys('mailId')
      const { link } = await h.mail.mailTo('cid@users.example')
      expectPage(await agent.get(link), 200, 'accept-invitation', 'form')
      expect(await adminOf(h).userStatus({ id: '4' })).to.include({ has_password: false })
    })
  })
}
