import type { Person } from '../support/person.ts'
import { expect } from 'chai'
import type { User } from '../../src/index.ts'
import { onBothStores } from '../support/both-stores.ts'
import { expectPage } from '../support/expect-page.ts'
import { CLIENT, type Harness, PASSWORD } from '../support/harness.ts'
import { jobs, later } from '../support/jobs.ts'
import { databaseOf, sha256, shapeOf, usableRecord } from '../support/observe.ts'
import { linksOf, press, withoutId } from '../support/page-forms.ts'
import { isMendedBy, OTHER_HASH, userWithExpiredLink } from '../support/reset-links.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { turns } from '../support/turns.ts'
import { createUserAgent, type Form } from '../support/user-agent.ts'
import { expectTitle } from '../support/words.ts'
import { accountOf, tokenOf, userWithLink } from '../support/person.ts'

const NEW = 'a new password'
const agent = createUserAgent()

/** Both methods refuse it, with no form on the page. */
async function isRefused(h: Harness, link: string) {
  for (const answer of [await agent.get(link), await h.reset(link, NEW)]) {
    expect([answer.status, answer.page]).to.deep.equal([400, 'reset-password'])
    expect(answer.text).not.to.include('name="password"')
    expect(answer.headers.getSetCookie()).to.deep.equal([])
  }
}

onBothStores('{oauth_path}/reset-password refuses a token that is', (technology) => {
  const h = suiteHarness({ technology })

  it('expired, though its record is still there (TOK-06)', async () => {
    const { user, link } = await userWithLink(h)
    await later(h, 3_000_000)
    const { link: newer } = await userWithLink(h)
    await later(h, 600_000)
    await isRefused(h, link)
    expect(await user.hasPassword(PASSWORD)).to.equal(true)
    expect(user.events('password_reset_completed')).to.deep.equal([])
    const documents = h.db?.collection('password_reset_tokens')
    const record = await documents?.findOne({ token_hash: sha256(tokenOf(link)) })
    if (h.db) expect(record).to.include({ user_id: user.id, used_at: null })
    expect((await agent.get(newer)).status).to.equal(200)
    await user.getsBackIn()
  })

  if (technology === 'memory') return

  it('damaged in the database: it fails closed (TOK-07)', async () => {
    const { user, link } = await userWithLink(h)
    const documents = databaseOf(h).collection('password_reset_tokens')
    const token_hash = sha256(tokenOf(link))
    const record = await documents.findOne({ token_hash })
    const inAnHour = new Date(Date.now() + 3_600_000)
    const damages: object[] = [
      { $unset: { expires_at: 1 } },
      ...[null, inAnHour.toISOString(), inAnHour.getTime(), [inAnHour]].map((expires_at) => ({
        $set: { expires_at },
      })),
      { $unset: { used_at: 1 } },
      { $set: { used_at: '' } },
      { $unset: { user_id: 1 } },
      { $set: { user_id: { $ne: '' } } },
      { $unset: { password_digest: 1 } },
    ]
    for (const damage of damages) {
      await documents.updateOne({ token_hash }, damage)
      await isRefused(h, link)
      await documents.replaceOne({ token_hash }, record ?? {})
    }
    expect(await user.hasPassword(PASSWORD)).to.equal(true)
    expect((await h.reset(link, NEW)).mode).to.equal('done')
  })

  it('of a deleted user: it changes nothing, and is no 5xx (TOK-17)', async () => {
    const { user, link } = await userWithLink(h)
    const form = await agent.get(link)
    expect(form.mode).to.equal('form')
    const users = databaseOf(h).collection<{ _id: string }>('users')
    await users.deleteOne({ _id: user.id })
    await isRefused(h, link)
    expect(await users.findOne({ _id: user.id })).to.equal(null)
    expect(user.events('password_reset_completed')).to.deep.equal([])
  })

  for (const minutes of [3, -3]) {
    it(`none of that, by a clock that was ${minutes} minutes from ours: it works`, async () => {
      const { user, link } = await userWithLink(h)
      const shift = (name: string) => ({
        $dateAdd: { startDate: `$${name}`, unit: 'minute', amount: minutes },
      })
      const tokens = databaseOf(h).collection('password_reset_tokens')
      const { modifiedCount } = await tokens.updateOne({ user_id: user.id }, [
        { $set: { created_at: shift('created_at'), expires_at: shift('expires_at') } },
      ])
      expect(modifiedCount).to.equal(1)
      expect((await h.reset(link, NEW)).mode).to.equal('done')
      expect(await user.hasPassword(NEW)).to.equal(true)
    })
  }
})

describe('{oauth_path}/reset-password refuses', () => {
  const h = suiteHarness()
  const pageOf = (query = '') => `${h.oauthUrl}/reset-password${query}`
  const post = (token: string) =>
    agent.post(pageOf(), { token, password: NEW, confirm_password: NEW })

  // Two tokens, lists and operators are in test/attacks/injection.test.ts and tokens.test.ts.
  describe('what is no token of ours (TOK-04, TOK-05, INJ-01)', () => {
    let user: Person
    let link: string
    let unknown: ReturnType<typeof shapeOf>

    before(async () => {
      ;({ user, link } = await userWithLink(h))
      unknown = shapeOf(await post('A'.repeat(43)))
    })

    // Whatever was refused, nothing changed, and the honest link still opens the form.
    afterEach(async () => {
      expect(await user.hasPassword(PASSWORD)).to.equal(true)
      expect((await agent.get(link)).mode).to.equal('form')
    })

    after(async () => expect((await h.reset(link, NEW)).mode).to.equal('done'))

    it('an unknown one: 400, a page without a form, and the way to a new link', () => {
      expect(unknown.status).to.equal(400)
      expect(unknown.text).to.include('data-mode="invalid"').and.include('/oauth2/forgot-password')
    })

    it('in the form, one that a mail program changed: like an unknown one', async () => {
      const token = tokenOf(link)
      const wrapped = `${token.slice(0, 20)}\r\n ${token.slice(20)}`
      const ends = ['=', '\n', '\0', '>.'].map((end) => token + end)
      for (const changed of [...ends, wrapped, ` ${token}`]) {
        expect(shapeOf(await post(changed)), changed).to.deep.equal(unknown)
      }
    })

    const malformed: Record<string, (token: string) => string> = {
      'an empty one': () => '',
      'a space': () => ' ',
      null: () => 'null',
      undefined: () => 'undefined',
      'one character short': (token) => token.slice(0, -1),
      'one character more': (token) => `${token}A`,
      'in the other case': (token) =>
        token.replace(/[a-z]/gi, (c) => (c < 'a' ? c.toLowerCase() : c.toUpperCase())),
      // The last character of 43 has two bits that decode to nothing.
      'another spelling of the same bytes': (token) => {
        const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
        return token.slice(0, -1) + alphabet[alphabet.indexOf(token.at(-1) ?? '') ^ 1]
      },
      'its stored hash': (token) => sha256(token),
      'with 10,000 characters': (token) => token.padEnd(10_000, 'A'),
      'an operator as text': () => '{"$ne":""}',
    }
    it('one that is nearly a token, or nearly ours: like an unknown one', async () => {
      for (const [what, change] of Object.entries(malformed)) {
        const token = change(tokenOf(link))
        expect(shapeOf(await post(token)), what).to.deep.equal(unknown)
        const opened = await agent.get(pageOf(`?${new URLSearchParams({ token })}`))
        expect(shapeOf(opened), what).to.deep.equal(unknown)
      }
    })

    it('the token as a part of the path (LINK-12)', async () => {
      for (const path of [`/${tokenOf(link)}`, '/x.css', '/']) {
        const answer = await agent.get(pageOf(`${path}?token=${tokenOf(link)}`))
        expect(answer.status).to.equal(404)
        expect(answer.text).not.to.include('name="password"')
      }
    })
  })

  it('a token of the other purpose: a verification token resets nothing, a reset token verifies nothing (TOK-14)', async () => {
    const { user, link } = await userWithLink(h, { emailVerified: false })
    await agent.post(`${h.oauthUrl}/resend-verification`, { username: user.username })
    const { link: verification } = await h.mail.mailTo(user.email ?? '', 2)

    expect((await agent.get(pageOf(`?token=${tokenOf(verification)}`))).status).to.equal(400)
    expect((await post(tokenOf(verification))).status).to.equal(400)
    const swapped = verification.replace(tokenOf(verification), tokenOf(link))
    for (const address of [swapped, link.replace('reset-password', 'verify-email')]) {
      const answer = await agent.get(address)
      expect([answer.status, answer.mode]).to.deep.equal([400, 'expired'])
    }
    expect(await user.hasPassword(PASSWORD)).to.equal(true)
    expect((await h.users.findById(user.id))?.emailVerified).to.equal(false)

    expect((await agent.get(verification)).mode).to.equal('verified')
    expect((await h.users.findById(user.id))?.emailVerified).to.equal(true)
    expect((await h.reset(link, NEW)).mode).to.equal('done')
  })
})

describe('A reset link is void once the account changed after it was issued', () => {
  const h = suiteHarness()

  const changes: Record<string, [change: Partial<User>, back: Partial<User>]> = {
    'its address': [{ email: 'new@users.example' }, {}],
    'the case of its address': [{ email: 'NEW@users.example' }, {}],
    'its password': [{ passwordHash: OTHER_HASH }, {}],
    'its enabled state': [{ disabled: true }, { disabled: false }],
    'its having a password': [{ passwordHash: undefined }, { passwordHash: 'set again' }],
    'its having an address': [{ email: undefined }, { email: 'back@users.example' }],
  }
  for (const [what, [change, back]] of Object.entries(changes)) {
    it(`${what}: POST changes nothing, and a new link works (TOK-16)`, async () => {
      const { user, link } = await userWithLink(h)
      await user.becomes(change)
      const before = await h.users.findById(user.id)
      const answer = await h.reset(link, NEW)
      expect([answer.status, answer.mode]).to.deep.equal([400, 'invalid'])
      expect(await h.users.findById(user.id)).to.deep.equal(before)
      expect(user.events('password_reset_completed')).to.deep.equal([])
      await user.becomes(back)
      await isMendedBy(h, { ...user, ...change, ...back })
    })
  }

  it('its password: POST ends no session of the account (3.3)', async () => {
    const { user, link } = await userWithLink(h)
    const browser = createUserAgent()
    await h.signIn(browser, user.username)
    await user.becomes({ passwordHash: OTHER_HASH })
    expect((await h.reset(link, NEW)).mode).to.equal('invalid')
    expect(await accountOf(h, browser)).to.equal(user.id)
  })
})

onBothStores('A reset link of an account that changes', (technology) => {
  const h = suiteHarness({ technology })

  it('while the reset runs: the newer password wins (TOK-18)', async () => {
    const runs = Array.from({ length: 6 }, async (_, run) => {
      const { user, link } = await userWithLink(h)
      const change = async () => {
        await turns(run * 20)
        await user.becomes({ passwordHash: OTHER_HASH })
      }
      const [answer] = await Promise.all([h.reset(link, NEW), change()])
      expect((await h.users.findById(user.id))?.passwordHash).to.equal(OTHER_HASH)
      expect((await h.reset(link, NEW)).status).to.equal(400)
      const completed = user.events('password_reset_completed')
      expect(completed).to.have.length(answer.status === 200 ? 1 : 0)
    })
    await Promise.all(runs)
  })
})

describe('A reset link that does nothing says why, to whoever holds it', () => {
  const h = suiteHarness()
  const postForgot = (form: Form, headers?: Record<string, string>) =>
    agent.post(`${h.oauthUrl}/forgot-password`, form, headers)

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
    const answer = await postForgot({ token })
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
    expect(withoutId(page.hidden)).to.deep.equal({ token: tokenOf(link), ui_locales: 'en' })
    expect(page.text).not.to.include(user.username)

    const mails = h.mail.mails.length
    const sent = await press(agent, page, '/forgot-password')
    expect([sent.status, sent.mode]).to.deep.equal([200, 'sent'])
    const { link: newer } = await h.mail.mailTo(user.email ?? '', 2)
    expect((await usableRecord(h, newer))?.carried).to.deep.equal({
      clientId: carried.client_id,
      redirectUri: carried.redirect_uri,
    })
    await isRefusedAs('superseded', link)
    expect((await h.reset(newer, NEW)).mode).to.equal('done')

    const { user: other, link: expired } = await userWithExpiredLink(h)
    const form = { token: tokenOf(expired), email: 'eve@evil.example', username: 'eve' }
    expect((await postForgot(form)).mode).to.equal('sent')
    await h.mail.mailTo(other.email ?? '', 2)
    const recipients = new Set(h.mail.mails.slice(mails).flatMap(({ to }) => to))
    expect([...recipients]).to.deep.equal([user.email, other.email])

    const { user: third, link: alike } = await userWithExpiredLink(h, carried)
    const sentAlike = await press(agent, await agent.get(alike), '/forgot-password')
    expect(shapeOf(sentAlike)).to.deep.equal(shapeOf(sent))
    await h.mail.mailTo(third.email ?? '', 2)
  })

  it('used: and it asks for nothing, and changes nothing, in another browser neither (TOK-11)', async () => {
    const { user, link } = await userWithLink(h)
    expect((await h.reset(link, NEW)).mode).to.equal('done')
    await isRefusedAs('used', link)
    await isNotRenewedAs('used', tokenOf(link))
    expect((await h.reset(link, 'another one')).status).to.equal(400)
    expect(await user.hasPassword(NEW)).to.equal(true)
    expect(user.events('password_reset_completed')).to.have.length(1)
    await user.getsBackIn()
  })

  it('superseded by a newer link, also once that was used: and it asks for nothing (TOK-13)', async () => {
    const { user, link } = await userWithLink(h)
    const newer = await user.forgets()
    await isRefusedAs('superseded', link)
    await isNotRenewedAs('superseded', tokenOf(link))
    expect(user.mailCount()).to.equal(2)
    expect((await h.reset(newer, NEW)).mode).to.equal('done')
    await isRefusedAs('superseded', link)
    expect(await user.hasPassword(NEW)).to.equal(true)
  })

  it('changed: the account is another one since, and the page leads to a new link', async () => {
    const { user, link } = await userWithLink(h)
    await user.becomes({ disabled: true })
    expectTitle(await agent.get(link), 'reset-password.invalid.changed.title')
    await user.becomes({ disabled: false })
    expectTitle(await agent.get(link), 'reset-password.invalid.expired.title')
    const email = 'elsewhere@users.example'
    await user.becomes({ email })
    await isRefusedAs('changed', link)
    await isNotRenewedAs('changed', tokenOf(link))
    expect(await user.hasPassword(PASSWORD)).to.equal(true)

    const address = linksOf(await agent.get(link)).find((each) => each.includes('/forgot-password'))
    const form = await agent.get(address ?? '')
    await press(agent, form, '/forgot-password', { typed: { identifier: user.username } })
    expect((await h.reset((await h.mail.mailTo(email)).link, NEW)).mode).to.equal('done')
  })

  it('changed: a link that was never posted asks for no new one either, and tells of it', async () => {
    const { user, link } = await userWithLink(h)
    const moved = { ...user, email: `new-${user.email}` }
    await user.becomes(moved)
    await isNotRenewedAs('changed', tokenOf(link))
    expectTitle(await agent.get(link), 'reset-password.invalid.changed.title')
    expect(user.events('password_reset_rejected').at(-1)?.reason).to.equal('account_changed')
    await moved.getsBackIn()
  })

  const changes: Record<string, Partial<User>> = {
    'its address': { email: 'other@users.example' },
    'its password': { passwordHash: OTHER_HASH },
    'its enabled state': { disabled: true },
  }
  for (const [what, change] of Object.entries(changes)) {
    it(`changed, where it expired and the account changed since, ${what}: no mail goes to it`, async () => {
      const { user, link } = await userWithExpiredLink(h)
      await user.becomes(change)
      await isRefusedAs('changed', link)
      await isNotRenewedAs('changed', tokenOf(link))
      expect(user.mailCount()).to.equal(1)
      await user.becomes({ email: user.email, disabled: false })
      await user.getsBackIn()
    })
  }

  it('unknown: whatever was never a link looks the same, and asks for nothing', async () => {
    const { user, link } = await userWithExpiredLink(h)
    const token = tokenOf(link)
    const expected = shapeOf(await isNotRenewedAs('unknown', 'A'.repeat(43)))
    expect(shapeOf(await postForgot({ token: `${token}\n` }))).to.deep.equal(expected)
    for (const other of ['', ' ', token.slice(0, -1), `${token}A`, 'x'.repeat(10_000)]) {
      expect(shapeOf(await postForgot({ token: other }))).to.deep.equal(expected)
      const query = new URLSearchParams({ token: other })
      const opened = await agent.get(`${h.oauthUrl}/reset-password?${query}`)
      expect(shapeOf(opened)).to.deep.equal(expected)
    }
    expect((await postForgot({ token })).mode).to.equal('sent')
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
      const answer = await postForgot(form)
      expect([answer.status, answer.mode]).to.deep.equal([400, mode])
    }
    const foreign = await postForgot({ token }, { 'sec-fetch-site': 'cross-site' })
    expect(foreign.status).to.equal(403)
    expect(known).to.include.members(await jobs(h))
    expect(user.mailCount()).to.equal(1)
    expect((await postForgot({ token })).mode).to.equal('sent')
    await h.mail.mailTo(user.email ?? '', 2)
  })

  it('to open one is no event; to post one is, and to ask for a new link with one that is no good', async () => {
    const { user, link } = await userWithLink(h)
    await user.forgets()
    await agent.get(link)
    expect(user.events('password_reset_rejected')).to.deep.equal([])
    await h.reset(link, NEW)
    await postForgot({ token: tokenOf(link) })
    const reasons = user.events('password_reset_rejected').map(({ reason }) => reason)
    expect(reasons).to.deep.equal(['invalidated', 'invalidated'])
    await user.getsBackIn()
  })
})
