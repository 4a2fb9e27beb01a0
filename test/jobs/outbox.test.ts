import { once } from 'node:events'
import { expect } from 'chai'
import type { Clock } from '../../src/clock.ts'
import type { AuditEventType, User } from '../../src/index.ts'
import { adminOf, suiteAdmin } from '../support/admin.ts'
import { eventually } from '../support/eventually.ts'
import { type Harness, PASSWORD, suiteHarness } from '../support/harness.ts'
import { isGivenBack } from '../support/jobs.ts'
import type { MailAnswer } from '../support/mail-server.ts'
import { ask, askAgain, shapeOf } from '../support/observe.ts'
import { type Person, tokenOf } from '../support/person.ts'
import { movableClock, moveTime } from '../support/time.ts'
import { type Answer, createUserAgent } from '../support/user-agent.ts'

describe('The outbox', () => {
  const h = suiteHarness({ mail: { answer: () => answers.shift() ?? 'take' }, mayLogErrors: true })
  const admin = suiteAdmin(h)
  /** What the server answers to each mail, in turn; afterwards it takes every one. */
  let answers: MailAnswer[] = []

  afterEach(async () => {
    answers = []
    h.mail.speak()
    await h.put({ smtp_host: '127.0.0.1' })
  })

  const event = (type: AuditEventType, user: Person) =>
    eventually(`${type} of ${user.username}`, () => user.events(type)[0])
  /** The mail with that number, from 1, and its link. */
  const linkOf = async (user: Person, count = 1) => (await user.mail(count)).link
  const resets = async (user: Person, link: string) =>
    (await user.choosesPassword('a new password', link)).mode

  for (const answer of ['defer', 'defer after data', 'drop'] as const) {
    it(`tries a mail again that is refused for now (${answer}), with a new token, and its link works (FLT-03, FLT-05)`, async () => {
      const user = await h.addVerified()
      const seen = new Set(h.mail.tokensSeen())
      answers = [answer]
      await h.forgot(user.username)
      const { reason } = await event('password_reset_mail_failed', user)
      expect(reason).to.equal('ERR_MAIL_FAILED')
      await moveTime(60_000)
      const link = await linkOf(user)
      const tokens = [...h.mail.tokensSeen()].filter((token) => !seen.has(token))
      // Two in each mail: that of its link, and that of "This wasn't me".
      expect(tokens).to.have.length(answer === 'defer' ? 2 : 4)
      expect(tokens).to.include(tokenOf(link))
      for (const token of tokens.filter((each) => each !== tokenOf(link))) {
        const dead = `${link.split('=')[0]}=${token}`
        expect(await resets(user, dead)).to.equal('invalid')
      }
      expect(await resets(user, link)).to.equal('done')
      expect(user.mailCount()).to.equal(1)
      expect(user.events('password_reset_mail_sent')).to.have.length(1)
      expect(user.events('password_reset_requested')).to.have.length(1)
    })
  }

  it('tries a mail once that is refused for good, and leaves no live link; the next request is served (FLT-04)', async () => {
    const user = await h.addVerified()
    answers = ['refuse']
    const refusals = h.mail.answered.refuse
    await h.forgot(user.username)
    const { reason } = await event('password_reset_mail_failed', user)
    expect(reason).to.equal('ERR_MAIL_REFUSED')
    const letter = await eventually('a dead letter', async () => {
      const { mails } = await admin.listOutbox({ state: 'dead', account_id: user.id })
      return mails[0]
    })
    expect(letter).to.include({ reason: 'ERR_MAIL_REFUSED' })
    const [token] = await h.store.resetTokens.ofUser(user.id, 2)
    expect(token?.invalidatedAt).to.be.instanceOf(Date)
    expect(h.mail.answered.refuse).to.equal(refusals + 1)
    expect(await resets(user, await user.forgets())).to.equal('done')
    expect(user.mailCount()).to.equal(1)

    const unverified = await h.addUnverified()
    answers = ['refuse']
    await h.resend(unverified.username)
    await event('email_verification_mail_failed', unverified)
    await eventually('no live token', async () => {
      const [token] = await h.store.verificationTokens.ofUser(unverified.id, 2)
      return token && token.expiresAt <= new Date()
    })
    await h.resend(unverified.username)
    expect((await unverified.opensElsewhere(await linkOf(unverified))).mode).to.equal('verified')
  })

  describe('while no mail can be sent', () => {
    const configure = (smtp_host: string) => () => h.put({ smtp_host })
    for (const [why, stop, go] of [
      ['SMTP is not configured', configure(''), configure('127.0.0.1')],
      ['the server never speaks', async () => h.mail.fallSilent(), async () => h.mail.speak()],
    ] as const) {
      it(`(${why}) the earlier link dies, and the newest of several requests gets the one mail`, async () => {
        const user = await h.addVerified()
        const earlier = await user.forgets()
        await stop()
        for (let count = 0; count < 3; count += 1) await h.forgot(user.username)
        const isDead = async () => (await user.opensElsewhere(earlier)).mode === 'invalid'
        await eventually('the earlier link is dead', isDead)
        const dropped = () => user.events('password_reset_mail_failed', 'superseded').length === 2
        await eventually('the others are dropped', dropped)
        await go()
        const link = await linkOf(user, 2)
        expect(await resets(user, earlier)).to.equal('invalid')
        expect(await resets(user, link)).to.equal('done')
        expect(user.mailCount()).to.equal(2)
      })
    }

    it('the newest of several requests for a verification gets the one mail; all get theirs that can be sent at once (3.2)', async () => {
      const user = await h.addUnverified()
      await h.put({ smtp_host: '' })
      for (let count = 0; count < 3; count += 1) await h.resend(user.username)
      const requested = () => user.events('email_verification_requested').length === 3
      await eventually('all are looked up', requested)
      await isGivenBack(h)
      await moveTime(2_500)
      await h.put({ smtp_host: '127.0.0.1' })
      const link = await linkOf(user)
      const dropped = () => user.events('email_verification_mail_failed').length === 2
      await eventually('the others are dropped', dropped)
      expect(user.mailCount()).to.equal(1)
      expect((await user.opensElsewhere(link)).mode).to.equal('verified')

      const other = await h.addUnverified()
      await Promise.all([
        h.resend(other.username),
        h.resend(other.username),
        h.resend(other.username),
      ])
      const links = [await linkOf(other, 1), await linkOf(other, 2), await linkOf(other, 3)]
      expect(new Set(links)).to.have.property('size', 3)
    })
  })

  it('counts the life of a link from when it is made, not from the request', async () => {
    const user = await h.addVerified()
    await h.put({ smtp_host: '', password_reset_expiration: '2s' })
    await h.forgot(user.username)
    await event('password_reset_requested', user)
    await isGivenBack(h)
    await moveTime(2_100)
    await h.put({ smtp_host: '127.0.0.1' })
    const link = await linkOf(user)
    await h.put({ password_reset_expiration: '1h' })
    expect(await resets(user, link)).to.equal('done')
  })

  it('sends nothing to an account that was verified, or disabled, while the mail waited', async () => {
    const [verified, disabled] = [await h.addUnverified(), await h.addVerified()]
    await h.put({ smtp_host: '' })
    await h.resend(verified.username)
    await h.forgot(disabled.username)
    await event('email_verification_requested', verified)
    await event('password_reset_requested', disabled)
    await isGivenBack(h)
    await verified.becomes({ emailVerified: true })
    await disabled.becomes({ disabled: true })
    await h.put({ smtp_host: '127.0.0.1' })
    const reasons = [
      await event('email_verification_mail_failed', verified),
      await event('password_reset_mail_failed', disabled),
    ]
    expect(reasons.map(({ reason }) => reason)).to.deep.equal(['already_verified', 'disabled'])
    expect([verified.mailCount(), disabled.mailCount()]).to.deep.equal([0, 0])
  })

  it('gives a mail under way back when it stops, and sends it at once after the next start', async () => {
    const user = await h.addVerified()
    h.mail.fallSilent()
    await h.forgot(user.username)
    await eventually('a connection', () => h.mail.mostOpen() > 0)
    await h.flows.stop({ withinMs: 1_000 })
    h.mail.speak()
    await h.flows.start()
    expect(await resets(user, await linkOf(user))).to.equal('done')
    expect(user.mailCount()).to.equal(1)
    expect(user.events('password_reset_mail_failed')).to.deep.equal([])
  })
})

const CAP = 3
/** What becomes of two requests, one after the other. */
const ONCE = [undefined, 'throttled']

type Named = Pick<User, 'username'>

/** Requests for links, in a suite. Each answers why no mail is sent, once that is decided. */
function requestsOf(h: Harness) {
  const reset = async ({ username }: Named) => (await ask(h, username)).reason

  async function verification({ username }: Named): Promise<string | undefined> {
    const { answer, reason } = await askAgain(h, username)
    expect([answer.status, answer.mode]).to.deep.equal([200, 'sent'])
    return reason
  }

  /** One after the other. */
  async function inTurn(count: number, request: typeof reset, user: Named) {
    const reasons: (string | undefined)[] = []
    for (let round = 0; round < count; round += 1) reasons.push(await request(user))
    return reasons
  }

  const newestLink = (user: User) =>
    h.mail.mails.findLast(({ to }) => to.includes(user.email ?? ''))?.link ?? ''

  return {
    reset,
    verification,
    inTurn,
    newestLink,

    /** Asks for as many as there may be; answers the link of the last one. */
    async useUp(user: User, request = reset): Promise<string> {
      expect(await inTurn(CAP, request, user)).to.deep.equal(Array(CAP).fill(undefined))
      return newestLink(user)
    },

    /** Ends on the page in mode `blocked`, whether or not a mail is sent. */
    async logIn({ username }: Named): Promise<Answer> {
      const { url } = await h.party.begin()
      const blocked = await h.login(createUserAgent(), url, username)
      expect(blocked.mode).to.equal('blocked')
      return blocked
    },
  }
}

describe('Mails to one account', () => {
  const CAPPED = { mails_per_account_per_hour: String(CAP) }
  const h = suiteHarness({ settings: CAPPED, mail: { answer: () => answer } })
  const { reset, verification, inTurn, useUp, newestLink, logIn } = requestsOf(h)
  let answer: MailAnswer = 'take'

  beforeEach(async () => {
    answer = 'take'
    await h.put(CAPPED)
  })

  it(`are ${CAP} at most, however often one is asked for, and the answers are equal (RATE-01)`, async () => {
    const user = await h.addVerified()
    const answers: Answer[] = []
    for (let round = 0; round < 5; round += 1) {
      const ten = Array.from({ length: 10 }, () => h.forgot(user.username))
      answers.push(...(await Promise.all(ten)))
    }
    answers.push(...(await Promise.all([h.forgot('nobody'), h.forgot('nobody else')])))
    for (const each of answers) expect(shapeOf(each)).to.deep.equal(shapeOf(answers[0] as Answer))
    const requested = () => user.events('password_reset_requested')
    await eventually('every request is decided about', () => requested().length === 50)
    await eventually('a link arrives', async () => {
      const link = newestLink(user)
      return link !== '' && (await user.opensElsewhere(link)).mode === 'form'
    })
    // Of those that arrived at once, before any was looked up, one more may be served.
    expect(user.mailCount()).to.be.within(1, CAP + 1)
    expect(await reset(await h.addVerified())).to.equal(undefined)
  })

  it('leave the newest link that arrived as it is (RATE-02); those of verifications all work', async () => {
    const user = await h.addVerified()
    const link = await useUp(user)
    expect(await inTurn(5, reset, user)).to.deep.equal(Array(5).fill('throttled'))
    expect(user.mailCount()).to.equal(CAP)
    expect((await user.choosesPassword('a new password', link)).mode).to.equal('done')
    expect(await user.hasPassword('a new password')).to.equal(true)

    const other = await h.addUnverified()
    const verifying = await useUp(other, verification)
    expect(await inTurn(3, verification, other)).to.deep.equal(Array(3).fill('throttled'))
    expect(other.mailCount()).to.equal(CAP)
    expect((await other.opensElsewhere(verifying)).mode).to.equal('verified')
    expect(await other.isVerified()).to.equal(true)
  })

  it('are counted for the account, by whatever name it is asked for (RATE-04)', async () => {
    const user = await h.addVerified({ username: 'Mixed-Case' })
    const { username, email = '' } = user
    const names = [username, email, email.toUpperCase(), email.toLowerCase()]
    for (const name of names.slice(0, CAP))
      expect(await reset({ username: name })).to.equal(undefined)
    for (const name of [...names, ` ${username}`, `${username.toUpperCase()} `, ` ${email} `])
      expect(await reset({ username: name }), name).to.equal('throttled')
    const [local, domain] = email.split('@')
    expect(await reset({ username: `${local}+1@${domain}` })).to.equal('unknown')
    expect(user.mailCount()).to.equal(CAP)
  })

  const voided: Record<string, (user: Person, link: string) => Promise<unknown>> = {
    'it was used': (user, link) => user.choosesPassword('a new password', link),
    'the address changed': (user) => user.becomes({ email: `new-${user.email}` }),
    'the password changed': async (user) => {
      const other = await h.addVerified()
      await other.choosesPassword('the password of another account', await other.forgets())
      const { passwordHash } = (await h.users.findById(other.id)) ?? other
      await user.becomes({ passwordHash })
    },
  }
  for (const [how, change] of Object.entries(voided)) {
    it(`are refused to nobody who has no link left because ${how}`, async () => {
      const user = await h.addVerified()
      const link = await useUp(user)
      expect(await reset(user)).to.equal('throttled')
      await change(user, link)
      expect(await inTurn(2, reset, user)).to.deep.equal(ONCE)
      const newest = h.mail.mails.at(-1)?.link ?? ''
      expect((await user.choosesPassword('another password', newest)).mode).to.equal('done')
    })
  }

  it('wait in peace while the mail server is down: no flood supersedes the one under way', async () => {
    const user = await h.addVerified()
    const requested = () => user.events('password_reset_requested')
    answer = 'defer'
    await inTurn(CAP, reset, user)
    const waiting = requested().length
    for (const reason of await inTurn(5, reset, user))
      expect(reason).to.be.oneOf(['throttled', 'ERR_MAIL_FAILED'])
    await eventually('the flood is decided about', () => requested().length === waiting + 5)
    for (const { reason } of requested().slice(waiting)) expect(reason).to.equal('throttled')
    expect(user.mailCount()).to.equal(0)
    answer = 'take'
    await moveTime(60_000)
    const { link } = await user.mail(1)
    expect((await user.choosesPassword('a new password', link)).mode).to.equal('done')
    expect(user.mailCount()).to.equal(1)
  })

  it('are limited for blocked logins too, and the page is the same (4.8, VER-13)', async () => {
    const user = await h.addUnverified()
    const first = await h.blockedLogin({ user })
    // One more than the cap: the code of a mail is good for its login alone.
    for (let count = 1; count <= CAP; count += 1) await h.blockedLogin({ user })
    const blocked = await logIn(user)
    const bare = ({ text, hidden }: Answer) =>
      text
        .replace(/name="(?:state|form_id)" value="[^"]*"/g, '')
        .replaceAll(hidden['login'] ?? 'no login', '')
    expect([blocked.status, bare(blocked)]).to.deep.equal([200, bare(first.blocked)])
    const throttled = () => user.events('email_verification_requested', 'throttled')
    await eventually('the request is throttled', () => throttled().length > 0)
    const logins = () => user.events('email_login_blocked')
    await eventually('all logins are recorded as blocked', () => logins().length === CAP + 2)
    expect((await first.opensLink()).status).to.equal(302)
  })

  it('are not counted where no mail can be sent; follow the setting at once; 0 is no limit', async () => {
    const user = await h.addVerified({ disabled: true })
    expect(await inTurn(2 * CAP, reset, user)).to.deep.equal(Array(2 * CAP).fill('disabled'))
    await user.becomes({ disabled: false })
    await useUp(user)
    expect(await reset(user)).to.equal('throttled')
    await h.put({ mails_per_account_per_hour: '0' })
    await useUp(user)
    expect(user.mailCount()).to.equal(2 * CAP)
  })
})

describe('Mails to one mailbox (RATE-13)', () => {
  const h = suiteHarness({ settings: { mails_per_account_per_hour: String(CAP) } })
  const { reset, verification, logIn } = requestsOf(h)

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
  const claim = (username: string, email = `${username}@users.example`) =>
    h.addUser({ username, email, emailVerified: false })
  const blocked = (users: Person[]) =>
    users.flatMap((user) => user.events('email_login_blocked')).length

  it(`are ${CAP}, a first one of each account, and ${CAP} resets, however many accounts were registered with it`, async () => {
    const [verifications, resets]: (string | undefined)[][] = [[], []]
    for (const [index, email] of [...mailbox('victim'), ...mailbox('victim')].entries()) {
      const user = await claim(`registered-${index}`, email)
      if (index % 2 === 0) verifications?.push(await verification(user))
      else resets?.push(await reset(user))
    }
    expect(verifications).to.deep.equal(Array(6).fill(undefined))
    const sent = Array<undefined>(1 + CAP).fill(undefined)
    expect(resets).to.deep.equal([...sent, 'throttled', 'throttled'])
    expect(mailsToMailbox('victim')).to.equal(6 + 1 + CAP)
    expect(await verification(await h.addUnverified())).to.equal(undefined)
  })

  it(`are ${CAP} more for logins of all its accounts together, and a first one of each`, async () => {
    const users: Person[] = []
    for (const [index, email] of mailbox('guest').entries())
      users.push(await claim(`guest-${index}`, email))
    for (const user of users) {
      await verification(user)
      await reset(user)
    }
    const before = mailsToMailbox('guest')
    for (const user of [...users, ...users]) await logIn(user)
    await eventually('all logins are decided about', () => blocked(users) === 2 * users.length)
    const expected = before + CAP + users.length
    await eventually('their mails', () => mailsToMailbox('guest') === expected)
    const throttledOf = (user: Person) => user.events('email_verification_requested', 'throttled')
    expect(users.flatMap(throttledOf)).to.have.length(users.length - CAP)
  })

  const otherPassword = ({ passwordHash = '' }: User, count: number) => ({
    passwordHash: passwordHash.slice(0, -1) + (count % 10),
  })
  const changes: [name: string, what: string, change: (user: User, count: number) => object][] = [
    ['flip', 'another address within it', (_, count) => ({ email: `flip+${count}@users.example` })],
    ['moody', 'another password, while the address is not verified', otherPassword],
  ]
  for (const [name, what, change] of changes) {
    it(`are no more for an account with ${what}`, async () => {
      const user = await claim(name)
      for (let count = 0; count < 4 * CAP; count += 1) {
        await user.becomes(change(user, count))
        await verification(user)
      }
      expect(mailsToMailbox(name)).to.equal(CAP + 1)
    })
  }
})

describe('The setting resend_cooldown', () => {
  const h = suiteHarness({ settings: { resend_cooldown: '1h' } })
  const { reset, verification, inTurn } = requestsOf(h)

  it('lets one request of a kind through, and the next when no link is left', async () => {
    const user = await h.addUnverified()
    expect(await inTurn(2, reset, user)).to.deep.equal(ONCE)
    expect(await inTurn(2, verification, user)).to.deep.equal(ONCE)
    const { link } = await user.mail(1)
    expect((await user.choosesPassword('a new password', link)).mode).to.equal('done')
    expect(await inTurn(2, reset, user)).to.deep.equal(ONCE)
  })

  it('is of each login that waits by itself, as its code is, of those who ask by name, and off where it is 0s', async () => {
    const user = await h.addUnverified()
    expect(await verification(user)).to.equal(undefined)
    const first = await h.blockedLogin({ user })
    expect(await verification(user)).to.equal('throttled')
    const second = await h.blockedLogin({ user })
    await second.presses('/resend-verification')
    const throttled = () => user.events('email_verification_requested', 'throttled')
    await eventually('the second mail for a login is throttled', () => throttled().length === 2)
    expect(user.mailCount()).to.equal(3)
    expect(second.code).not.to.equal(first.code)
    await first.stillGetsIn()

    const other = await h.addUnverified()
    expect(await inTurn(2, reset, other)).to.deep.equal(ONCE)
    await h.put({ resend_cooldown: '0s' })
    expect(await reset(other)).to.equal(undefined)
  })
})

describe('The setting mails_per_minute', () => {
  const h = suiteHarness({ settings: { mails_per_minute: '2' } })

  it('lets so many mails leave; the others wait, lose no attempt, and leave when they may', async () => {
    const people = await Promise.all(
      Array.from({ length: 12 }, (_, index) => h.addUser({ username: `many-${index}` })),
    )
    await Promise.all(people.map(({ username }) => h.forgot(username)))
    const requested = () => h.eventsOf('password_reset_requested').length
    await eventually('all are looked up', () => requested() === people.length)
    await eventually('two mails leave', () => h.mail.mails.length >= 2)
    expect(h.events.filter(({ type }) => type.endsWith('_mail_failed'))).to.deep.equal([])
    await eventually('the others wait, as if nobody had tried', async () => {
      const { mails } = await adminOf(h).listOutbox({ state: 'waiting' })
      const isUntouched = mails.every(({ attempts, is_held }) => attempts === 0 && !is_held)
      return mails.length === people.length - 2 && isUntouched
    })
    expect(h.mail.mails).to.have.length(2)
    await moveTime(60_000)
    await eventually('two more leave', () => h.mail.mails.length === 4)
    await h.put({ mails_per_minute: '0' })
    await moveTime(60_000)
    for (const person of people) {
      const { link } = await person.mail(1)
      expect((await person.opensLink(link)).mode).to.equal('form')
    }
    expect(h.mail.mails).to.have.length(people.length)
  })
})

describe('The setting reset_requires_verified_email', () => {
  const h = suiteHarness({ settings: { reset_requires_verified_email: 'true' } })
  const { reset, verification, newestLink } = requestsOf(h)

  it('lets a username get no reset link while its address is not verified, and the answer is the same', async () => {
    const unverified = await h.addUnverified()
    const verified = await h.addUser({ username: 'verified' })
    const refused = await ask(h, unverified.username)
    expect(refused.reason).to.equal('not_verified')
    expect(unverified.mailCount()).to.equal(0)
    const served = await ask(h, verified.username)
    expect(served.reason).to.equal(undefined)
    expect(shapeOf(served.answer)).to.deep.equal(shapeOf(refused.answer))
    expect(await verification(unverified)).to.equal(undefined)
    expect((await unverified.opensElsewhere(newestLink(unverified))).mode).to.equal('verified')
    expect(await reset(unverified)).to.equal(undefined)

    await h.put({ reset_requires_verified_email: 'false' })
    const other = await h.addUnverified()
    expect(await reset(other)).to.equal(undefined)
    expect(await other.hasPassword(PASSWORD)).to.equal(true)
  })
})

describe('A long queue of mails', () => {
  /** A worker that found nothing looks again only if something wakes it. */
  const sleep: Clock['sleep'] = async (ms, options = {}) => {
    const { signal } = options
    const isPoll = signal && !options.ref && ms >= 500 && ms <= 1_000
    if (!isPoll || signal.aborted) return movableClock.sleep(ms, options)
    await once(signal, 'abort')
  }
  const h = suiteHarness({ flows: { clock: { ...movableClock, sleep } } })

  it('is worked through without a pause: no batch waits for the next look at the queue', async () => {
    await h.flows.stop()
    await h.flows.start({ workers: false })
    const users = await Promise.all(Array.from({ length: 300 }, () => h.addVerified()))
    await Promise.all(users.map(({ username }) => h.forgot(username)))
    await h.flows.stop()
    await h.flows.start()
    await eventually('each has a mail', () => users.every((user) => user.mailCount() === 1))
  })
})
