import { expect } from 'chai'
import type { User } from '../../src/index.ts'
import { onBothStores } from '../support/both-stores.ts'
import { eventually } from '../support/eventually.ts'
import { CLIENT, PASSWORD, startHarness, type Harness } from '../support/harness.ts'
import { eventsOf, hasPassword, shapeOf, tokenOf, usableRecord } from '../support/observe.ts'
import { createUserAgent, type Form } from '../support/user-agent.ts'
import { expectTitle } from '../support/words.ts'

const NEW = 'a new password'
const OTHER_HASH = '$2b$04$CCCCCCCCCCCCCCCCCCCCC.E7iYKmz3HnBJeEDbgBwEjVHZJRxEVVu'

onBothStores('A reset link that does nothing says why, to whoever holds it (D17)', (technology) => {
  const agent = createUserAgent()
  let h: Harness
  let forgotUrl: string

  before(async () => {
    h = await startHarness({ technology })
    forgotUrl = `${h.oauthUrl}/forgot-password`
  })

  after(() => h.close())

  let added = 0
  async function userWithLink() {
    added += 1
    const user = await h.addUser({ username: `user${added}` })
    return { user, link: await h.resetLink(user) }
  }

  async function userWithExpiredLink(carried: Record<string, string> = {}) {
    added += 1
    const user = await h.addUser({ username: `user${added}` })
    await h.put({ password_reset_expiration: '1s' })
    await h.forgot(user.username, carried)
    const { link } = await h.mail.mailTo(user.email ?? '')
    await h.put({ password_reset_expiration: '1h' })
    await eventually('the link expires', async () => !(await usableRecord(h, link)))
    return { user, link }
  }

  const jobs = async () =>
    (await h.store.outbox.list({ limit: 1_000 }, new Date())).map(({ id }) => id)

  const mailsTo = ({ email = '' }: User) =>
    h.mail.mails.filter(({ to }) => to.includes(email)).length

  /** Opened or posted, it is refused for this reason, and nothing changes. */
  async function isRefusedAs(reason: string, link: string) {
    for (const answer of [await agent.get(link), await h.reset(link, NEW)]) {
      expect([answer.status, answer.page, answer.mode]).to.deep.equal([
        400,
        'reset-password',
        'invalid',
      ])
      expectTitle(answer, `reset-password.invalid.${reason}.title`)
      expect('token' in answer.hidden).to.equal(reason === 'expired')
    }
  }

  /** Asked for a new link in its place, it is refused for this reason, and no mail is asked for. */
  async function isNotRenewedAs(reason: string, token: string) {
    const mails = h.mail.mails.length
    const known = await jobs()
    const answer = await agent.post(forgotUrl, { token })
    expect([answer.status, answer.mode]).to.deep.equal([400, 'invalid'])
    expectTitle(answer, `reset-password.invalid.${reason}.title`)
    expect(known).to.include.members(await jobs())
    expect(h.mail.mails.length).to.equal(mails)
    return answer
  }

  /** A new link of that user works. */
  async function isMendedBy(user: User) {
    const link = await h.resetLink(user)
    expect((await h.reset(link, 'an honest password')).mode).to.equal('done')
    expect(await hasPassword(h, user, 'an honest password')).to.equal(true)
  }

  it('expired: and a new mail is one click away, without typing a name', async () => {
    const carried = { client_id: CLIENT.client_id, redirect_uri: CLIENT.redirect_uris[0] }
    const { user, link } = await userWithExpiredLink(carried)
    await isRefusedAs('expired', link)
    const page = await agent.get(link)
    expect(page.hidden).to.deep.equal({ token: tokenOf(link) })
    expect(page.text).to.include(`<form method="post" action="/oauth2/forgot-password">`)
    expect(page.text).not.to.include(user.username)

    const sent = await agent.post(forgotUrl, page.hidden)
    expect(shapeOf(sent)).to.deep.equal(shapeOf(await h.forgot('nobody at all')))
    const { link: newer } = await h.mail.mailTo(user.email ?? '', 2)
    expect((await usableRecord(h, newer))?.carried).to.deep.equal({
      clientId: carried.client_id,
      redirectUri: carried.redirect_uri,
    })
    await isRefusedAs('superseded', link)
    expect((await h.reset(newer, NEW)).mode).to.equal('done')
    expect(await hasPassword(h, user, NEW)).to.equal(true)
  })

  it('expired: the new mail goes to the address of the account, whatever else is in the form', async () => {
    const { user, link } = await userWithExpiredLink()
    const mails = h.mail.mails.length
    const form = { token: tokenOf(link), email: 'eve@evil.example', username: 'eve' }
    expect((await agent.post(forgotUrl, form)).mode).to.equal('sent')
    await h.mail.mailTo(user.email ?? '', 2)
    expect(h.mail.mails.slice(mails).flatMap(({ to }) => to)).to.deep.equal([user.email])
  })

  it('used: and it asks for nothing', async () => {
    const { user, link } = await userWithLink()
    expect((await h.reset(link, NEW)).mode).to.equal('done')
    await isRefusedAs('used', link)
    await isNotRenewedAs('used', tokenOf(link))
    expect(await hasPassword(h, user, NEW)).to.equal(true)
    await isMendedBy(user)
  })

  it('superseded by a newer link, also once that was used: and it asks for nothing', async () => {
    const { user, link } = await userWithLink()
    const newer = await h.resetLink(user)
    await isRefusedAs('superseded', link)
    await isNotRenewedAs('superseded', tokenOf(link))
    expect(mailsTo(user)).to.equal(2)
    expect((await h.reset(newer, NEW)).mode).to.equal('done')
    await isRefusedAs('superseded', link)
    expect(await hasPassword(h, user, NEW)).to.equal(true)
  })

  it('changed: the account is another one since', async () => {
    const { user, link } = await userWithLink()
    await h.changeUser(user, { email: 'elsewhere@users.example' })
    expectTitle(await h.reset(link, NEW), 'reset-password.invalid.changed.title')
    await isRefusedAs('changed', link)
    await isNotRenewedAs('changed', tokenOf(link))
    expect(await hasPassword(h, user, PASSWORD)).to.equal(true)
    await isMendedBy({ ...user, email: 'elsewhere@users.example' })
  })

  it('changed: a link that was never posted asks for no new one either, and tells of it', async () => {
    const { user, link } = await userWithLink()
    await h.changeUser(user, { email: `new-${user.email}` })
    await isNotRenewedAs('changed', tokenOf(link))
    expectTitle(await agent.get(link), 'reset-password.invalid.changed.title')
    expect(eventsOf(h, 'password_reset_rejected', user).at(-1)?.reason).to.equal('account_changed')
    await isMendedBy({ ...user, email: `new-${user.email}` })
  })

  const changes: Record<string, Partial<User>> = {
    'its address': { email: 'other@users.example' },
    'its password': { passwordHash: OTHER_HASH },
    'its enabled state': { disabled: true },
  }
  for (const [what, change] of Object.entries(changes)) {
    it(`changed, where it expired and the account changed since, ${what}: no mail goes to it`, async () => {
      const { user, link } = await userWithExpiredLink()
      await h.changeUser(user, change)
      await isRefusedAs('changed', link)
      await isNotRenewedAs('changed', tokenOf(link))
      expect(mailsTo(user)).to.equal(1)
      await h.changeUser(user, { email: user.email, disabled: false })
      await isMendedBy(user)
    })
  }

  it('unknown: whatever was never a link looks the same, and asks for nothing', async () => {
    const { user, link } = await userWithExpiredLink()
    const token = tokenOf(link)
    const expected = shapeOf(await isNotRenewedAs('unknown', 'A'.repeat(43)))
    expect(shapeOf(await agent.post(forgotUrl, { token: `${token}\n` }))).to.deep.equal(expected)
    const others = ['', ' ', token.slice(0, -1), `${token}A`, 'x'.repeat(10_000)]
    for (const other of others) {
      expect(shapeOf(await agent.post(forgotUrl, { token: other }))).to.deep.equal(expected)
      const opened = await agent.get(
        `${h.oauthUrl}/reset-password?token=${encodeURIComponent(other)}`,
      )
      expect(shapeOf(opened)).to.deep.equal(expected)
    }
    expect((await agent.post(forgotUrl, { token })).mode).to.equal('sent')
    await h.mail.mailTo(user.email ?? '', 2)
  })

  it('a token that is repeated, in brackets, beside a name or from another site asks for nothing', async () => {
    const { user, link } = await userWithExpiredLink()
    const token = tokenOf(link)
    const known = await jobs()
    const forms: [form: Form, mode: string][] = [
      [`token=${token}&token=${token}`, 'bad_request'],
      [`token[]=${token}`, 'invalid'],
      [`token=${token}&identifier=`, 'invalid'],
    ]
    for (const [form, mode] of forms) {
      const answer = await agent.post(forgotUrl, form)
      expect([answer.status, answer.mode]).to.deep.equal([400, mode])
    }
    const foreign = await agent.post(forgotUrl, { token }, { 'sec-fetch-site': 'cross-site' })
    expect(foreign.status).to.equal(403)
    expect(known).to.include.members(await jobs())
    expect(mailsTo(user)).to.equal(1)
    expect((await agent.post(forgotUrl, { token })).mode).to.equal('sent')
    await h.mail.mailTo(user.email ?? '', 2)
  })

  it('to open one is no event; to post one is, and to ask for a new link with one that is no good', async () => {
    const { user, link } = await userWithLink()
    await h.resetLink(user)
    await agent.get(link)
    expect(eventsOf(h, 'password_reset_rejected', user)).to.deep.equal([])
    await h.reset(link, NEW)
    await agent.post(forgotUrl, { token: tokenOf(link) })
    const reasons = eventsOf(h, 'password_reset_rejected', user).map(({ reason }) => reason)
    expect(reasons).to.deep.equal(['invalidated', 'invalidated'])
    await isMendedBy(user)
  })
})
