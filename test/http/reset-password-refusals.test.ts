import { expect } from 'chai'
import type { User } from '../../src/index.ts'
import { onBothStores } from '../support/both-stores.ts'
import { PASSWORD, type Harness } from '../support/harness.ts'
import { later } from '../support/jobs.ts'
import { databaseOf, eventsOf, hasPassword, sha256, shapeOf, tokenOf } from '../support/observe.ts'
import { isMendedBy, userWithLink } from '../support/reset-links.ts'

import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent, type Form } from '../support/user-agent.ts'

const NEW = 'a new password'
const agent = createUserAgent()
const withToken = (token: string) => ({ token, password: NEW, confirm_password: NEW })

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
    expect(await hasPassword(h, user, PASSWORD)).to.equal(true)
    expect(eventsOf(h, 'password_reset_completed', user)).to.deep.equal([])
    const documents = h.db?.collection('password_reset_tokens')
    const record = await documents?.findOne({ token_hash: sha256(tokenOf(link)) })
    if (h.db) expect(record).to.include({ user_id: user.id, used_at: null })
    expect((await agent.get(newer)).status).to.equal(200)
    await isMendedBy(h, user)
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
    expect(await hasPassword(h, user, PASSWORD)).to.equal(true)
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
    expect(eventsOf(h, 'password_reset_completed', user)).to.deep.equal([])
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
      expect(await hasPassword(h, user, NEW)).to.equal(true)
    })
  }
})

describe('{oauth_path}/reset-password refuses', () => {
  const h = suiteHarness()
  let url: string

  before(async () => {
    url = `${h.oauthUrl}/reset-password`
  })

  const post = (form: Form) => agent.post(url, form)

  describe('what is no token of ours (TOK-04, TOK-05, INJ-01)', () => {
    let user: User
    let link: string
    let unknown: ReturnType<typeof shapeOf>

    before(async () => {
      ;({ user, link } = await userWithLink(h))
      unknown = shapeOf(await post(withToken('A'.repeat(43))))
    })

    // Whatever was refused, nothing changed, and the honest link still opens the form.
    afterEach(async () => {
      expect(await hasPassword(h, user, PASSWORD)).to.equal(true)
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
        expect(shapeOf(await post(withToken(changed))), changed).to.deep.equal(unknown)
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
        expect(shapeOf(await post(withToken(token))), what).to.deep.equal(unknown)
        const opened = await agent.get(`${url}?${new URLSearchParams({ token })}`)
        expect(shapeOf(opened), what).to.deep.equal(unknown)
      }
    })

    it('no token, two, a list, an operator, a path, or bytes that are not UTF-8: 400 and no 5xx', async () => {
      const token = tokenOf(link)
      for (const query of [
        '',
        `token=${token}&token=${token}`,
        `token[]=${token}`,
        'token[$ne]=x',
        'token[$regex]=.*',
        `token.$eq=${token}`,
        `token=${token}%FF`,
      ]) {
        expect((await agent.get(`${url}?${query}`)).status, query).to.equal(400)
        const answer = await post(`${query}&password=${NEW}&confirm_password=${NEW}`)
        expect(answer.status, query).to.equal(400)
      }
    })

    it('a form that another site posts: 403 (D31)', async () => {
      const foreign = [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }]
      for (const headers of foreign) {
        const answer = await agent.post(url, withToken(tokenOf(link)), headers)
        expect([answer.status, answer.mode]).to.deep.equal([403, 'refused'])
      }
    })

    it('the token as a part of the path (LINK-12)', async () => {
      for (const path of [`/${tokenOf(link)}`, '/x.css', '/']) {
        const answer = await agent.get(`${url}${path}?token=${tokenOf(link)}`)
        expect(answer.status).to.equal(404)
        expect(answer.text).not.to.include('name="password"')
      }
    })
  })

  it('a token of the other purpose: a verification token resets nothing, a reset token verifies nothing (TOK-14)', async () => {
    const { user, link } = await userWithLink(h, { emailVerified: false })
    await agent.post(`${h.oauthUrl}/resend-verification`, { username: user.username })
    const { link: verification } = await h.mail.mailTo(user.email ?? '', 2)

    expect((await agent.get(`${url}?token=${tokenOf(verification)}`)).status).to.equal(400)
    expect((await post(withToken(tokenOf(verification)))).status).to.equal(400)
    const swapped = verification.replace(tokenOf(verification), tokenOf(link))
    for (const address of [swapped, link.replace('reset-password', 'verify-email')]) {
      const answer = await agent.get(address)
      expect([answer.status, answer.mode]).to.deep.equal([400, 'expired'])
    }
    expect(await hasPassword(h, user, PASSWORD)).to.equal(true)
    expect((await h.users.findById(user.id))?.emailVerified).to.equal(false)

    expect((await agent.get(verification)).mode).to.equal('verified')
    expect((await h.users.findById(user.id))?.emailVerified).to.equal(true)
    expect((await h.reset(link, NEW)).mode).to.equal('done')
  })
})
