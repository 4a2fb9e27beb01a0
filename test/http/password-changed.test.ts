import { expect } from 'chai'
import { eventually } from '../support/eventually.ts'
import { isIdle } from '../support/jobs.ts'
import { ask, eventsOf, hasPassword } from '../support/observe.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent } from '../support/user-agent.ts'
import type { User } from '../../src/index.ts'

describe('The mail that tells of a reset (D25)', () => {
  const h = suiteHarness({
    settings: { password_changed_email: 'true' },
    mail: { answer: (to) => (refused.has(to) ? 'refuse' : 'take') },
    mayLogErrors: true,
  })
  let added = 0
  /** Addresses that the mail server refuses. */
  const refused = new Set<string>()

  const newUser = () => h.addUser({ username: `user-${(added += 1)}` })
  const mailsTo = ({ email }: User) =>
    h.mail.mails.filter(({ to, mail }) => {
      const isNotice = mail.headers.get('x-account-flows-mail') === 'password_changed'
      return isNotice && to.includes(email ?? '')
    })
  const noticeTo = (user: User) => eventually('the notice', () => mailsTo(user)[0])

  it('goes once to the account, after a refused form too, says when, leads to the form for a new link, and is audited as what it is', async () => {
    const user = await newUser()
    const link = await h.resetLink(user)
    expect((await h.reset(link, 'Tr0ub4dor&3', 'Tr0ub4dor&4')).status).to.equal(400)
    expect((await h.reset(link, 'Tr0ub4dor&3')).mode).to.equal('done')
    const { mail } = await noticeTo(user)
    expect(mail.subject).to.equal('Your password was changed')
    expect(mail.text).to.include(`Hello ${user.username},`)
    const year = new Date().getUTCFullYear()
    expect(mail.text).to.match(new RegExp(`Changed on \\w+ \\d+, ${year} at [\\d:]+.[AP]M UTC`))
    const [form] = /http:\S+/.exec(mail.text ?? '') ?? []
    expect((await createUserAgent().get(form ?? '')).page).to.equal('forgot-password')
    expect(`${mail.text} ${String(mail.html)}`).not.to.match(/token|Tr0ub/)
    await isIdle(h)
    expect(mailsTo(user)).to.have.length(1)
    const [reset, notice, ...others] = eventsOf(h, 'password_reset_mail_sent', user)
    expect(reset?.details).not.to.deep.equal({ mail: 'password_changed' })
    expect(notice?.details).to.deep.equal({ mail: 'password_changed' })
    expect(others).to.deep.equal([])
    expect(eventsOf(h, 'password_reset_requested', user)).to.have.length(1)
  })

  it('is not sent while password_changed_email is false', async () => {
    const user = await newUser()
    const link = await h.resetLink(user)
    await h.put({ password_changed_email: 'false' })
    try {
      expect((await h.reset(link, 'a new password')).mode).to.equal('done')
      await ask(h, user.username)
      expect(mailsTo(user)).to.deep.equal([])
    } finally {
      await h.put({ password_changed_email: 'true' })
    }
    expect((await h.reset(await h.resetLink(user), 'another password')).mode).to.equal('done')
    await noticeTo(user)
  })

  it('leaves the reset as it is when the mail server refuses it', async () => {
    const user = await newUser()
    const link = await h.resetLink(user)
    refused.add(user.email ?? '')
    expect((await h.reset(link, 'a new password')).mode).to.equal('done')
    const failed = await eventually('the event', () =>
      eventsOf(h, 'password_reset_mail_failed', user).at(0),
    )
    expect(failed).to.deep.include({
      reason: 'ERR_MAIL_REFUSED',
      details: { mail: 'password_changed' },
    })
    expect(mailsTo(user)).to.deep.equal([])
    expect(await hasPassword(h, user, 'a new password')).to.equal(true)
    expect(eventsOf(h, 'password_reset_completed', user)).to.have.length(1)
  })

  it('goes to the address that the link went to, whatever becomes of the account meanwhile', async () => {
    const moved = 'moved@users.example'
    const users: User[] = []
    for (const change of [
      { disabled: true },
      { email: undefined },
      { email: 'thief@[192.0.2.1]' },
      { email: moved },
    ]) {
      const user = await newUser()
      const link = await h.resetLink(user)
      await h.put({ smtp_host: '' })
      expect((await h.reset(link, 'a new password')).mode).to.equal('done')
      await h.changeUser(user, change)
      await h.put({ smtp_host: '127.0.0.1' })
      users.push(user)
    }
    for (const user of users) await noticeTo(user)
    expect(h.mail.mails.filter(({ to }) => to.includes(moved))).to.deep.equal([])
  })
})
