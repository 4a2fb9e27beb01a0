import { expect } from 'chai'
import type { AuditEventType, User } from '../../src/index.ts'
import { suiteAdmin } from '../support/admin.ts'
import { eventually } from '../support/eventually.ts'
import type { MailAnswer } from '../support/mail-server.ts'
import { tokenOf, type Person } from '../support/person.ts'
import { moveTime } from '../support/time.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { suiteHarness } from '../support/suite-harness.ts'

describe('The outbox', () => {
  const h = suiteHarness({
    mail: { answer: () => answers.shift() ?? 'take' },
    mayLogErrors: true,
  })
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
  const resend = ({ username }: User) =>
    createUserAgent().post(`${h.oauthUrl}/resend-verification`, { username })
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
    const link = await user.forgets()
    expect(await resets(user, link)).to.equal('done')
    expect(user.mailCount()).to.equal(1)
  })

  it('leaves no verification link of a mail that is refused for good', async () => {
    const user = await h.addUnverified()
    answers = ['refuse']
    await resend(user)
    await event('email_verification_mail_failed', user)
    await eventually('no live token', async () => {
      const [token] = await h.store.verificationTokens.ofUser(user.id, 2)
      return token && token.expiresAt <= new Date()
    })
    await resend(user)
    expect((await user.opensElsewhere(await linkOf(user))).mode).to.equal('verified')
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
        await eventually(
          'the others are dropped',
          () => user.events('password_reset_mail_failed', 'superseded').length === 2,
        )
        await go()
        const link = await linkOf(user, 2)
        expect(await resets(user, earlier)).to.equal('invalid')
        expect(await resets(user, link)).to.equal('done')
        expect(user.mailCount()).to.equal(2)
      })
    }

    it('the newest of several requests for a verification gets the one mail', async () => {
      const user = await h.addUnverified()
      await h.put({ smtp_host: '' })
      for (let count = 0; count < 3; count += 1) await resend(user)
      await eventually(
        'all are looked up',
        () => user.events('email_verification_requested').length === 3,
      )
      await moveTime(2_500)
      await h.put({ smtp_host: '127.0.0.1' })
      const link = await linkOf(user)
      await eventually(
        'the others are dropped',
        () => user.events('email_verification_mail_failed').length === 2,
      )
      expect(user.mailCount()).to.equal(1)
      expect((await user.opensElsewhere(link)).mode).to.equal('verified')
    })
  })

  it('mails each of several requests for a verification that can be sent at once (3.2)', async () => {
    const user = await h.addUnverified()
    await Promise.all([resend(user), resend(user), resend(user)])
    const links = [await linkOf(user, 1), await linkOf(user, 2), await linkOf(user, 3)]
    expect(new Set(links)).to.have.property('size', 3)
  })

  it('counts the life of a link from when it is made, not from the request', async () => {
    const user = await h.addVerified()
    await h.put({ smtp_host: '', password_reset_expiration: '2s' })
    await h.forgot(user.username)
    await event('password_reset_requested', user)
    await moveTime(2_100)
    await h.put({ smtp_host: '127.0.0.1' })
    const link = await linkOf(user)
    await h.put({ password_reset_expiration: '1h' })
    expect(await resets(user, link)).to.equal('done')
  })

  it('sends nothing to an account that was verified, or disabled, while the mail waited', async () => {
    const [verified, disabled] = [await h.addUnverified(), await h.addVerified()]
    await h.put({ smtp_host: '' })
    await resend(verified)
    await h.forgot(disabled.username)
    await event('email_verification_requested', verified)
    await event('password_reset_requested', disabled)
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
    const link = await linkOf(user)
    expect(await resets(user, link)).to.equal('done')
    expect(user.mailCount()).to.equal(1)
    expect(user.events('password_reset_mail_failed')).to.deep.equal([])
  })
})
