import { expect } from 'chai'
import type { User } from '../../src/index.ts'
import { addUnverified, blockedLogin, expectResumed, mailsTo } from '../support/blocked-login.ts'
import { eventually } from '../support/eventually.ts'
import { PASSWORD, type Harness } from '../support/harness.ts'
import type { MailAnswer } from '../support/mail-server.ts'
import { ask, eventsOf, hasPassword, shapeOf, usableRecord } from '../support/observe.ts'
import { moveTime } from '../support/time.ts'
import { createUserAgent, type Answer } from '../support/user-agent.ts'
import { press } from '../support/page-forms.ts'
import { suiteHarness } from '../support/suite-harness.ts'

const CAP = 3

/** Asks for a verification link, and waits until it is decided about. */
async function askAgain(h: Harness, username: string): Promise<string | undefined> {
  const userAgent = `again ${Math.random()}`
  const answer = await createUserAgent().post(
    `${h.oauthUrl}/resend-verification`,
    { username },
    { 'user-agent': userAgent },
  )
  expect([answer.status, answer.mode]).to.deep.equal([200, 'sent'])
  const event = await eventually(`a worker decides about ${username}`, () =>
    h.events.find(
      ({ type, reason, ...event }) =>
        event.userAgent === userAgent && (type.includes('_mail_') || reason !== undefined),
    ),
  )
  return event.reason
}

/** Ends on the page in mode `blocked`, whether or not a mail is sent. */
async function logIn(h: Harness, { username }: User): Promise<Answer> {
  const { url } = await h.party.begin()
  const blocked = await h.login(createUserAgent(), url, username)
  expect(blocked.mode).to.equal('blocked')
  return blocked
}

/** Asks for reset links, one after the other; each request ends alike. */
async function asks(h: Harness, count: number, { username }: User, reason?: string) {
  for (let round = 0; round < count; round += 1) {
    expect((await ask(h, username)).reason).to.equal(reason)
  }
}

/** Likewise for verification links. */
async function asksAgain(h: Harness, count: number, { username }: User, reason?: string) {
  for (let round = 0; round < count; round += 1) {
    expect(await askAgain(h, username)).to.equal(reason)
  }
}

const newestLink = (h: Harness, user: User) =>
  h.mail.mails.findLast(({ to }) => to.includes(user.email ?? ''))?.link ?? ''

describe('Mails to one account', () => {
  const h = suiteHarness({
    settings: { mails_per_account_per_hour: String(CAP) },
    mail: { answer: () => answer },
  })
  let answer: MailAnswer = 'take'
  let named = 0

  beforeEach(() => {
    answer = 'take'
  })
  const addPerson = (more: Partial<User> = {}) => {
    named += 1
    return h.addUser({ username: `Person-${named}`, ...more })
  }

  async function useUp(user: User) {
    await asks(h, CAP, user)
    return newestLink(h, user)
  }

  async function useUpVerification(user: User) {
    await asksAgain(h, CAP, user)
    return newestLink(h, user)
  }

  it(`are ${CAP} at most, however often one is asked for, and the answers are equal (RATE-01)`, async () => {
    const user = await addPerson()
    const answers: Answer[] = []
    for (let round = 0; round < 10; round += 1) {
      answers.push(
        ...(await Promise.all(Array.from({ length: 10 }, () => h.forgot(user.username)))),
      )
    }
    const others = await Promise.all([h.forgot('nobody'), h.forgot('nobody else')])
    for (const each of [...answers, ...others]) {
      expect(shapeOf(each)).to.deep.equal(shapeOf(answers[0] as Answer))
    }
    await eventually(
      'every request is decided about',
      () => eventsOf(h, 'password_reset_requested', user).length === 100,
      20_000,
    )
    await eventually('a link arrives', async () => {
      const link = newestLink(h, user)
      return link !== '' && (await usableRecord(h, link))
    })
    // Of those that arrived at once, before any was looked up, one more may be served.
    expect(mailsTo(h, user)).to.be.within(1, CAP + 1)
    const another = await addPerson()
    expect((await ask(h, another.username)).reason).to.equal(undefined)
  })

  it('leave the newest link that arrived as it is (RATE-02)', async () => {
    const user = await addPerson()
    const link = await useUp(user)
    const record = await usableRecord(h, link)
    const mails = mailsTo(h, user)
    await asks(h, 5, user, 'throttled')
    expect(mailsTo(h, user)).to.equal(mails)
    expect(record).to.include({ userId: user.id })
    expect(await usableRecord(h, link)).to.deep.equal(record)
    expect((await h.reset(link, 'a new password')).mode).to.equal('done')
    expect(await hasPassword(h, user, 'a new password')).to.equal(true)
  })

  it('are counted for the account, by whatever name it is asked for (RATE-04)', async () => {
    const user = await addPerson()
    const email = user.email ?? ''
    const names = [user.username, email, email.toUpperCase(), email.toLowerCase()]
    for (const name of names.slice(0, CAP)) expect((await ask(h, name)).reason).to.equal(undefined)
    for (const name of names) expect((await ask(h, name)).reason, name).to.equal('throttled')
    for (const name of [` ${user.username}`, `${user.username.toUpperCase()} `, ` ${email} `])
      expect((await ask(h, name)).reason, name).to.equal('throttled')
    const [local, domain] = email.split('@')
    expect((await ask(h, `${local}+1@${domain}`)).reason).to.equal('unknown')
    expect(mailsTo(h, user)).to.equal(CAP)
  })

  it('are refused to nobody who has used the link, and has none left', async () => {
    const user = await addPerson()
    const link = await useUp(user)
    expect((await ask(h, user.username)).reason).to.equal('throttled')
    expect((await h.reset(link, 'a new password')).mode).to.equal('done')
    expect((await ask(h, user.username)).reason).to.equal(undefined)
    expect((await ask(h, user.username)).reason).to.equal('throttled')
    expect((await h.reset(newestLink(h, user), 'another password')).mode).to.equal('done')
  })

  const voided: Record<string, (user: User) => Promise<void>> = {
    'the address changed': (user) => h.changeUser(user, { email: `new-${user.email}` }),
    'the password changed': async (user) => {
      const other = await addPerson()
      const link = await h.resetLink(other)
      await h.reset(link, 'the password of another account')
      const { passwordHash } = (await h.users.findById(other.id)) ?? other
      await h.changeUser(user, { passwordHash })
    },
  }
  for (const [how, change] of Object.entries(voided)) {
    it(`are refused to nobody whose link is void because ${how}`, async () => {
      const user = await addPerson()
      await useUp(user)
      await change(user)
      expect((await ask(h, user.username)).reason).to.equal(undefined)
      expect((await ask(h, user.username)).reason).to.equal('throttled')
    })
  }

  it('wait in peace while the mail server is down: no flood supersedes the one under way', async () => {
    const user = await addPerson()
    answer = 'defer'
    for (let count = 0; count < CAP; count += 1) await ask(h, user.username)
    const waiting = eventsOf(h, 'password_reset_requested', user).length
    for (let count = 0; count < 5; count += 1) {
      expect((await ask(h, user.username)).reason).to.be.oneOf(['throttled', 'ERR_MAIL_FAILED'])
    }
    await eventually('the flood is throttled', () => {
      const requested = eventsOf(h, 'password_reset_requested', user).slice(waiting)
      return requested.length === 5 && requested.every(({ reason }) => reason === 'throttled')
    })
    expect(mailsTo(h, user)).to.equal(0)
    answer = 'take'
    await moveTime(60_000)
    const { link } = await h.mail.mailTo(user.email ?? '')
    expect((await h.reset(link, 'a new password')).mode).to.equal('done')
    expect(mailsTo(h, user)).to.equal(1)
  })

  it('are limited for verification likewise, and the links that arrived all work', async () => {
    const user = await addPerson({ emailVerified: false })
    const link = await useUpVerification(user)
    await asksAgain(h, 3, user, 'throttled')
    expect(mailsTo(h, user)).to.equal(CAP)
    expect((await createUserAgent().get(link)).mode).to.equal('verified')
    expect((await h.users.findById(user.id))?.emailVerified).to.equal(true)
  })

  it('are limited for blocked logins too, and the page is the same (4.8, VER-13)', async () => {
    const user = await addPerson({ emailVerified: false })
    const first = await blockedLogin(h, { user })
    // One more than the cap: the code of a mail is good for its login alone.
    for (let count = 1; count <= CAP; count += 1) await blockedLogin(h, { user })
    const blocked = await logIn(h, user)
    const bare = ({ text, hidden }: Answer) =>
      text
        .replace(/name="(?:state|form_id)" value="[^"]*"/g, '')
        .replaceAll(hidden['login'] ?? 'no login', '')
    expect([blocked.status, bare(blocked)]).to.deep.equal([200, bare(first.blocked)])
    await eventually(
      'the request is throttled',
      () => eventsOf(h, 'email_verification_requested', user, 'throttled').length > 0,
    )
    await eventually(
      'all logins are recorded as blocked',
      () => eventsOf(h, 'email_login_blocked', user).length === CAP + 2,
    )
    const answered = await first.agent.get(first.link)
    expect(answered.status).to.equal(302)
  })

  it('of a login are not used up by a stranger who asks by name: its link finishes its own request', async () => {
    const user = await addPerson({ emailVerified: false })
    await useUpVerification(user)
    expect(await askAgain(h, user.username)).to.equal('throttled')
    const login = await blockedLogin(h, { user })
    await expectResumed(h, login, await login.agent.get(login.link))
    expect(mailsTo(h, user)).to.equal(CAP + 1)
  })

  it('of one kind do not use up the other: a flood of resets keeps nobody from verifying', async () => {
    const user = await addPerson({ emailVerified: false })
    await useUp(user)
    await asks(h, 3, user, 'throttled')
    const login = await blockedLogin(h, { user })
    expect((await login.agent.get(login.link)).status).to.equal(302)
  })

  it('are counted apart where they tell what was done to the account', async () => {
    const user = await addPerson()
    const link = await useUp(user)
    await h.put({ password_changed_email: 'true' })
    try {
      await h.reset(link, 'a new password')
      const notice = await h.mail.mailTo(user.email ?? '', CAP + 1)
      expect(notice.kind).to.equal('password_changed')
    } finally {
      await h.put({ password_changed_email: 'false' })
    }
  })

  it('follow the setting at once; 0 is no limit', async () => {
    const user = await addPerson()
    await useUp(user)
    expect((await ask(h, user.username)).reason).to.equal('throttled')
    await h.put({ mails_per_account_per_hour: '0' })
    try {
      await asks(h, 3, user)
    } finally {
      await h.put({ mails_per_account_per_hour: String(CAP) })
    }
    expect(mailsTo(h, user)).to.equal(CAP + 3)
  })

  it('are not counted where no mail can be sent', async () => {
    const user = await addPerson({ disabled: true })
    await asks(h, 2 * CAP, user, 'disabled')
    await h.changeUser(user, { disabled: false })
    await useUp(user)
  })
})

describe('Mails to one mailbox (RATE-13)', () => {
  const h = suiteHarness({ settings: { mails_per_account_per_hour: String(CAP) } })

  const mailbox = (name: string) => [
    `${name}@users.example`,
    `${name.toUpperCase()}@users.example`,
    `${name}@USERS.example`,
    `${name}+1@users.example`,
    `${name}+2+3@users.example`,
    `${name.toUpperCase()}+x@Users.Example`,
  ]
  const mailsToMailbox = (name: string) =>
    h.mail.mails.filter(({ to }) => to.some((each) => each.toLowerCase().startsWith(name))).length

  it(`are ${CAP}, a first one of each account, and ${CAP} resets, however many accounts were registered with it`, async () => {
    const reasons: (string | undefined)[] = []
    const addresses = [...mailbox('victim'), ...mailbox('victim')]
    for (const [index, email] of addresses.entries()) {
      const username = `registered-${index}`
      await h.addUser({ username, email, emailVerified: false })
      const isReset = index % 2 === 1
      reasons.push(isReset ? (await ask(h, username)).reason : await askAgain(h, username))
    }
    const verifications = reasons.filter((_, index) => index % 2 === 0)
    const resets = reasons.filter((_, index) => index % 2 === 1)
    expect(verifications).to.deep.equal(Array(6).fill(undefined))
    const sent = Array<undefined>(1 + CAP).fill(undefined)
    expect(resets).to.deep.equal([...sent, 'throttled', 'throttled'])
    expect(mailsToMailbox('victim')).to.equal(6 + 1 + CAP)
    const other = await addUnverified(h)
    expect(await askAgain(h, other.username)).to.equal(undefined)
  })

  it(`are ${CAP} more for logins of all its accounts together, and a first one of each`, async () => {
    const users: User[] = []
    for (const [index, email] of mailbox('guest').entries()) {
      users.push(await h.addUser({ username: `guest-${index}`, email, emailVerified: false }))
    }
    for (const { username } of users) {
      await askAgain(h, username)
      await ask(h, username)
    }
    const before = mailsToMailbox('guest')
    for (const user of [...users, ...users]) await logIn(h, user)
    const blocked = () => users.flatMap((user) => eventsOf(h, 'email_login_blocked', user))
    await eventually('all logins are decided about', () => blocked().length === 2 * users.length)
    const expected = before + CAP + users.length
    await eventually('their mails', () => mailsToMailbox('guest') === expected)
    const throttled = users.flatMap((user) =>
      eventsOf(h, 'email_verification_requested', user, 'throttled'),
    )
    expect(throttled).to.have.length(users.length - CAP)
  })

  it('are left for the login of an account whose only link somebody else asked for by name', async () => {
    const email = 'tagged+mallory@users.example'
    const mallory = await h.addUser({ username: 'mallory', email, emailVerified: false })
    for (let count = 0; count <= CAP; count += 1) await logIn(h, mallory)
    await eventually(
      'all logins are decided about',
      () => eventsOf(h, 'email_login_blocked', mallory).length === CAP + 1,
    )
    const user = await addUnverified(h, { username: 'tagged', email: 'tagged@users.example' })
    expect(await askAgain(h, user.username)).to.equal(undefined)
    const login = await blockedLogin(h, { user })
    await expectResumed(h, login, await login.agent.get(login.link))
    expect(mailsTo(h, user)).to.equal(2)
  })

  it('cannot be used up by one other account', async () => {
    const others = { username: 'squatter', email: 'newbie+zz@users.example' }
    const squatter = await addUnverified(h, others)
    for (let count = 0; count < 4 * CAP; count += 1) await askAgain(h, squatter.username)
    expect(mailsTo(h, squatter)).to.equal(CAP)
    const email = 'newbie@users.example'
    const newbie = await h.addUser({ username: 'newbie', email, emailVerified: false })
    expect(await askAgain(h, newbie.username)).to.equal(undefined)
    expect((await ask(h, newbie.username)).reason).to.equal(undefined)
    expect((await createUserAgent().get(newestLink(h, newbie))).mode).to.equal('form')
  })

  it('are few where the address of an account changes within it', async () => {
    const flip = await addUnverified(h, { username: 'flip', email: 'flip@users.example' })
    for (let count = 0; count < 4 * CAP; count += 1) {
      await h.changeUser(flip, { email: `flip+${count}@users.example` })
      await askAgain(h, flip.username)
    }
    expect(mailsToMailbox('flip')).to.equal(CAP + 1)
  })

  it('are no more under another password, while the address is not verified', async () => {
    const user = await addUnverified(h, { username: 'moody', email: 'moody@users.example' })
    for (let count = 0; count < 4 * CAP; count += 1) {
      await h.changeUser(user, { passwordHash: `${user.passwordHash?.slice(0, -1)}${count % 10}` })
      await askAgain(h, user.username)
    }
    expect(mailsToMailbox('moody')).to.equal(CAP + 1)
  })

  it('still reach an account whose address is verified, while it has no link', async () => {
    const owner = await h.addUser({ username: 'owner', email: 'owner@users.example' })
    for (const [index, email] of mailbox('owner').slice(1).entries()) {
      const { username } = await addUnverified(h, { username: `like-owner-${index}`, email })
      await askAgain(h, username)
    }
    expect(mailsToMailbox('owner')).to.equal(5)
    expect((await ask(h, 'owner')).reason).to.equal(undefined)
    expect((await ask(h, 'owner')).reason).to.equal('throttled')
    const link = newestLink(h, owner)
    expect((await h.reset(link, 'a new password')).mode).to.equal('done')
    expect((await ask(h, 'owner')).reason).to.equal(undefined)
  })
})

describe('The setting resend_cooldown', () => {
  const h = suiteHarness({ settings: { resend_cooldown: '1h' } })

  it('lets one request of a kind through, and the next when no link is left', async () => {
    const user = await addUnverified(h)
    expect((await ask(h, user.username)).reason).to.equal(undefined)
    expect((await ask(h, user.username)).reason).to.equal('throttled')
    expect(await askAgain(h, user.username)).to.equal(undefined)
    expect(await askAgain(h, user.username)).to.equal('throttled')
    const reset = h.mail.mails.find(
      ({ kind, to }) => kind === 'password_reset' && to.includes(user.email ?? ''),
    )
    expect((await h.reset(reset?.link ?? '', 'a new password')).mode).to.equal('done')
    expect((await ask(h, user.username)).reason).to.equal(undefined)
    expect((await ask(h, user.username)).reason).to.equal('throttled')
  })

  it('is of each login that waits by itself, as its code is, and of those who ask by name', async () => {
    const user = await addUnverified(h)
    expect(await askAgain(h, user.username)).to.equal(undefined)
    const first = await blockedLogin(h, { user })
    expect(await askAgain(h, user.username)).to.equal('throttled')
    const second = await blockedLogin(h, { user })
    await press(second.agent, second.blocked, '/resend-verification')
    await eventually(
      'the second mail for a login is throttled',
      () => eventsOf(h, 'email_verification_requested', user, 'throttled').length === 2,
    )
    expect(mailsTo(h, user)).to.equal(3)
    expect(second.code).not.to.equal(first.code)
    await expectResumed(h, first, await first.agent.get(first.link))
  })

  it('is for each account by itself, and off where it is 0s', async () => {
    const [one, other] = [await addUnverified(h), await addUnverified(h)]
    expect((await ask(h, one.username)).reason).to.equal(undefined)
    expect((await ask(h, other.username)).reason).to.equal(undefined)
    expect((await ask(h, one.username)).reason).to.equal('throttled')
    await h.put({ resend_cooldown: '0s' })
    try {
      expect((await ask(h, one.username)).reason).to.equal(undefined)
    } finally {
      await h.put({ resend_cooldown: '1h' })
    }
  })
})

describe('The setting mails_per_minute', () => {
  const h = suiteHarness({ settings: { mails_per_minute: '2' } })

  it('lets so many mails leave; the others wait, lose no attempt, and leave when they may', async () => {
    const people = await Promise.all(
      Array.from({ length: 12 }, (_, index) => h.addUser({ username: `many-${index}` })),
    )
    await Promise.all(people.map(({ username }) => h.forgot(username)))
    await eventually(
      'all are looked up',
      () => eventsOf(h, 'password_reset_requested').length === people.length,
    )
    await eventually('two mails leave', () => h.mail.mails.length >= 2)
    expect(h.events.filter(({ type }) => type.endsWith('_mail_failed'))).to.deep.equal([])
    await eventually('the others wait, as if nobody had tried', async () => {
      const waiting = await h.store.outbox.list({ state: 'waiting', limit: 20 }, new Date())
      return (
        waiting.length === people.length - 2 &&
        waiting.every(({ attempts, isHeld }) => attempts === 0 && !isHeld)
      )
    })
    expect(h.mail.mails).to.have.length(2)
    await moveTime(60_000)
    await eventually('two more leave', () => h.mail.mails.length === 4)
    await h.put({ mails_per_minute: '0' })
    await moveTime(60_000)
    for (const { email } of people) {
      const { link } = await h.mail.mailTo(email ?? '')
      expect((await createUserAgent().get(link)).mode).to.equal('form')
    }
    expect(h.mail.mails).to.have.length(people.length)
  })
})

describe('The setting reset_requires_verified_email', () => {
  const h = suiteHarness({ settings: { reset_requires_verified_email: 'true' } })

  it('lets a username get no reset link while its address is not verified, and the answer is the same', async () => {
    const unverified = await addUnverified(h)
    const verified = await h.addUser({ username: 'verified' })
    const asked = await ask(h, unverified.username)
    expect(asked.reason).to.equal('not_verified')
    expect(mailsTo(h, unverified)).to.equal(0)
    const served = await ask(h, verified.username)
    expect(served.reason).to.equal(undefined)
    expect(shapeOf(served.answer)).to.deep.equal(shapeOf(asked.answer))
    expect(await askAgain(h, unverified.username)).to.equal(undefined)
    expect((await createUserAgent().get(newestLink(h, unverified))).mode).to.equal('verified')
    expect((await ask(h, unverified.username)).reason).to.equal(undefined)
  })

  it('is off by default', async () => {
    const user = await addUnverified(h)
    await h.put({ reset_requires_verified_email: 'false' })
    expect((await ask(h, user.username)).reason).to.equal(undefined)
    expect(await hasPassword(h, user, PASSWORD)).to.equal(true)
    await h.put({ reset_requires_verified_email: 'true' })
  })
})
