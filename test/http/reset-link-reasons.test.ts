import { expect } from 'chai'
import type { User } from '../../src/index.ts'
import { mailsTo } from '../support/blocked-login.ts'
import { expectPage } from '../support/expect-page.ts'
import { CLIENT, PASSWORD } from '../support/harness.ts'
import { jobs } from '../support/jobs.ts'
import { eventsOf, hasPassword, shapeOf, tokenOf, usableRecord } from '../support/observe.ts'
import { linksOf, press } from '../support/page-forms.ts'
import {
  isMendedBy,
  OTHER_HASH,
  userWithExpiredLink,
  userWithLink,
} from '../support/reset-links.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent, type Form } from '../support/user-agent.ts'
import { expectTitle } from '../support/words.ts'

const NEW = 'a new password'

describe('A reset link that does nothing says why, to whoever holds it (D17)', () => {
  const agent = createUserAgent()
  const h = suiteHarness()
  let forgotUrl: string

  before(async () => {
    forgotUrl = `${h.oauthUrl}/forgot-password`
  })

  /** Opened or posted, it is refused for this reason, and nothing changes. */
  async function isRefusedAs(reason: string, link: string) {
    for (const answer of [await agent.get(link), await h.reset(link, NEW)]) {
      expectPage(answer, 400, 'reset-password', 'invalid')
      expectTitle(answer, `reset-password.invalid.${reason}.title`)
      expect(answer.text).not.to.include('name="password"')
      expect(answer.headers.getSetCookie()).to.deep.equal([])
      expect('token' in answer.hidden).to.equal(reason === 'expired')
    }
  }

  /** Asked for a new link in its place, it is refused for this reason, and no mail is asked for. */
  async function isNotRenewedAs(reason: string, token: string) {
    const mails = h.mail.mails.length
    const known = await jobs(h)
    const answer = await agent.post(forgotUrl, { token })
    expect([answer.status, answer.mode]).to.deep.equal([400, 'invalid'])
    expectTitle(answer, `reset-password.invalid.${reason}.title`)
    expect(known).to.include.members(await jobs(h))
    expect(h.mail.mails.length).to.equal(mails)
    return answer
  }

  it('expired: and a new mail is one click away, without typing a name, to the address of the account', async () => {
    const carried = { client_id: CLIENT.client_id, redirect_uri: CLIENT.redirect_uris[0] }
    const { user, link } = await userWithExpiredLink(h, carried)
    await isRefusedAs('expired', link)
    const page = await agent.get(link)
    expect(page.hidden).to.deep.equal({ token: tokenOf(link) })
    expect(page.text).not.to.include(user.username)

    const mails = h.mail.mails.length
    const sent = await press(agent, page, '/forgot-password')
    expect(shapeOf(sent)).to.deep.equal(shapeOf(await h.forgot('nobody at all')))
    const { link: newer } = await h.mail.mailTo(user.email ?? '', 2)
    expect((await usableRecord(h, newer))?.carried).to.deep.equal({
      clientId: carried.client_id,
      redirectUri: carried.redirect_uri,
    })
    await isRefusedAs('superseded', link)
    expect((await h.reset(newer, NEW)).mode).to.equal('done')

    const { user: other, link: expired } = await userWithExpiredLink(h)
    const form = { token: tokenOf(expired), email: 'eve@evil.example', username: 'eve' }
    expect((await agent.post(forgotUrl, form)).mode).to.equal('sent')
    await h.mail.mailTo(other.email ?? '', 2)
    const recipients = new Set(h.mail.mails.slice(mails).flatMap(({ to }) => to))
    expect([...recipients]).to.deep.equal([user.email, other.email])
  })

  it('used: and it asks for nothing, and changes nothing, in another browser neither (TOK-11)', async () => {
    const { user, link } = await userWithLink(h)
    expect((await h.reset(link, NEW)).mode).to.equal('done')
    await isRefusedAs('used', link)
    await isNotRenewedAs('used', tokenOf(link))
    const form = { token: tokenOf(link), password: 'another one', confirm_password: 'another one' }
    const other = await createUserAgent().post(`${h.oauthUrl}/reset-password`, form)
    expect(other.status).to.equal(400)
    expect(await hasPassword(h, user, NEW)).to.equal(true)
    expect(eventsOf(h, 'password_reset_completed', user)).to.have.length(1)
    await isMendedBy(h, user)
  })

  it('superseded by a newer link, also once that was used: and it asks for nothing (TOK-13)', async () => {
    const { user, link } = await userWithLink(h)
    const newer = await h.resetLink(user)
    await isRefusedAs('superseded', link)
    await isNotRenewedAs('superseded', tokenOf(link))
    expect(mailsTo(h, user)).to.equal(2)
    expect((await h.reset(newer, NEW)).mode).to.equal('done')
    await isRefusedAs('superseded', link)
    expect(await hasPassword(h, user, NEW)).to.equal(true)
  })

  it('changed: the account is another one since, and the page leads to a new link', async () => {
    const { user, link } = await userWithLink(h)
    const moved = { ...user, email: 'elsewhere@users.example' }
    await h.changeUser(user, moved)
    expectTitle(await h.reset(link, NEW), 'reset-password.invalid.changed.title')
    await isRefusedAs('changed', link)
    await isNotRenewedAs('changed', tokenOf(link))
    expect(await hasPassword(h, user, PASSWORD)).to.equal(true)

    const address = linksOf(await agent.get(link)).find((each) => each.endsWith('/forgot-password'))
    const form = await agent.get(address ?? '')
    await press(agent, form, '/forgot-password', { typed: { identifier: user.username } })
    const { link: fresh } = await h.mail.mailTo(moved.email)
    expect((await h.reset(fresh, NEW)).mode).to.equal('done')
  })

  it('changed: a link that was never posted asks for no new one either, and tells of it', async () => {
    const { user, link } = await userWithLink(h)
    const moved = { ...user, email: `new-${user.email}` }
    await h.changeUser(user, moved)
    await isNotRenewedAs('changed', tokenOf(link))
    expectTitle(await agent.get(link), 'reset-password.invalid.changed.title')
    expect(eventsOf(h, 'password_reset_rejected', user).at(-1)?.reason).to.equal('account_changed')
    await isMendedBy(h, moved)
  })

  const changes: Record<string, Partial<User>> = {
    'its address': { email: 'other@users.example' },
    'its password': { passwordHash: OTHER_HASH },
    'its enabled state': { disabled: true },
  }
  for (const [what, change] of Object.entries(changes)) {
    it(`changed, where it expired and the account changed since, ${what}: no mail goes to it`, async () => {
      const { user, link } = await userWithExpiredLink(h)
      await h.changeUser(user, change)
      await isRefusedAs('changed', link)
      await isNotRenewedAs('changed', tokenOf(link))
      expect(mailsTo(h, user)).to.equal(1)
      await h.changeUser(user, { email: user.email, disabled: false })
      await isMendedBy(h, user)
    })
  }

  it('changed only for as long as the account is disabled', async () => {
    const { user, link } = await userWithLink(h)
    await h.changeUser(user, { disabled: true })
    expectTitle(await agent.get(link), 'reset-password.invalid.changed.title')
    await h.changeUser(user, { disabled: false })
    expect((await h.reset(link, NEW)).mode).to.equal('done')
  })

  it('unknown: whatever was never a link looks the same, and asks for nothing', async () => {
    const { user, link } = await userWithExpiredLink(h)
    const token = tokenOf(link)
    const expected = shapeOf(await isNotRenewedAs('unknown', 'A'.repeat(43)))
    expect(shapeOf(await agent.post(forgotUrl, { token: `${token}\n` }))).to.deep.equal(expected)
    for (const other of ['', ' ', token.slice(0, -1), `${token}A`, 'x'.repeat(10_000)]) {
      expect(shapeOf(await agent.post(forgotUrl, { token: other }))).to.deep.equal(expected)
      const query = new URLSearchParams({ token: other })
      const opened = await agent.get(`${h.oauthUrl}/reset-password?${query}`)
      expect(shapeOf(opened)).to.deep.equal(expected)
    }
    expect((await agent.post(forgotUrl, { token })).mode).to.equal('sent')
    await h.mail.mailTo(user.email ?? '', 2)
  })

  it('a token that is repeated, in brackets, beside a name or from another site asks for nothing', async () => {
    const { user, link } = await userWithExpiredLink(h)
    const token = tokenOf(link)
    const known = await jobs(h)
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
    expect(known).to.include.members(await jobs(h))
    expect(mailsTo(h, user)).to.equal(1)
    expect((await agent.post(forgotUrl, { token })).mode).to.equal('sent')
    await h.mail.mailTo(user.email ?? '', 2)
  })

  it('to open one is no event; to post one is, and to ask for a new link with one that is no good', async () => {
    const { user, link } = await userWithLink(h)
    await h.resetLink(user)
    await agent.get(link)
    expect(eventsOf(h, 'password_reset_rejected', user)).to.deep.equal([])
    await h.reset(link, NEW)
    await agent.post(forgotUrl, { token: tokenOf(link) })
    const reasons = eventsOf(h, 'password_reset_rejected', user).map(({ reason }) => reason)
    expect(reasons).to.deep.equal(['invalidated', 'invalidated'])
    await isMendedBy(h, user)
  })
})
