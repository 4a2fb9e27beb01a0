import { expect } from 'chai'
import type { User } from '../../src/index.ts'
import { onBothStores } from '../support/both-stores.ts'
import { eventually } from '../support/eventually.ts'
import { PASSWORD, startHarness, type Harness } from '../support/harness.ts'
import { databaseOf, eventsOf, hasPassword, sha256, shapeOf, tokenOf } from '../support/observe.ts'
import { createUserAgent, type Form } from '../support/user-agent.ts'

const NEW = 'a new password'

onBothStores('{oauth_path}/reset-password refuses', (technology) => {
  const agent = createUserAgent()
  let h: Harness
  let url: string

  before(async () => {
    h = await startHarness({ technology })
    url = `${h.oauthUrl}/reset-password`
  })

  after(() => h.close())

  let added = 0
  async function userWithLink(changes: Partial<User> = {}) {
    added += 1
    const user = await h.addUser({ username: `user${added}`, ...changes })
    return { user, link: await h.resetLink(user) }
  }

  const post = (form: Form) => agent.post(url, form)
  const withToken = (token: string) => ({ token, password: NEW, confirm_password: NEW })

  /** Both methods refuse it, with no form on the page. */
  async function isRefused(link: string) {
    for (const answer of [await agent.get(link), await h.reset(link, NEW)]) {
      expect([answer.status, answer.page]).to.deep.equal([400, 'reset-password'])
      expect(answer.text).not.to.include('name="password"')
      expect(answer.headers.getSetCookie()).to.deep.equal([])
    }
  }

  /** A new link of that user works. */
  async function isMendedBy(user: User) {
    const link = await h.resetLink(user)
    expect((await h.reset(link, 'an honest password')).mode).to.equal('done')
    expect(await hasPassword(h, user, 'an honest password')).to.equal(true)
  }

  describe('a token that is used, invalidated or expired (7.3)', () => {
    it('used: a second reset changes nothing, in another browser neither (TOK-11)', async () => {
      const { user, link } = await userWithLink()
      expect((await h.reset(link, 'the first password')).mode).to.equal('done')
      await isRefused(link)
      const other = await createUserAgent().post(url, withToken(tokenOf(link)))
      expect(other.status).to.equal(400)
      expect(await hasPassword(h, user, 'the first password')).to.equal(true)
      expect(eventsOf(h, 'password_reset_completed', user)).to.have.length(1)
      await isMendedBy(user)
    })

    it('invalidated by a newer link, which works (TOK-13)', async () => {
      const { user, link } = await userWithLink()
      const newer = await h.resetLink(user)
      await isRefused(link)
      expect(await hasPassword(h, user, PASSWORD)).to.equal(true)
      expect((await h.reset(newer, NEW)).mode).to.equal('done')
      await isRefused(link)
      expect(await hasPassword(h, user, NEW)).to.equal(true)
    })

    it('expired, though its record is still there (TOK-06)', async () => {
      const { link: longer } = await userWithLink()
      await h.put({ password_reset_expiration: '1s' })
      const { user, link } = await userWithLink()
      await h.put({ password_reset_expiration: '1h' })
      await eventually('the link expires', async () => (await agent.get(link)).status === 400)
      await isRefused(link)
      expect(await hasPassword(h, user, PASSWORD)).to.equal(true)
      expect(eventsOf(h, 'password_reset_completed', user)).to.deep.equal([])
      const documents = h.db?.collection('password_reset_tokens')
      const record = await documents?.findOne({ token_hash: sha256(tokenOf(link)) })
      if (h.db) expect(record).to.include({ user_id: user.id, used_at: null })
      expect((await agent.get(longer)).status).to.equal(200)
      await isMendedBy(user)
    })

    if (technology === 'mongodb') {
      it('damaged in the database: it fails closed (TOK-07)', async () => {
        const { user, link } = await userWithLink()
        const documents = databaseOf(h).collection('password_reset_tokens')
        const token_hash = sha256(tokenOf(link))
        const record = await documents.findOne({ token_hash })
        const later = new Date(Date.now() + 3_600_000)
        const damages: object[] = [
          { $unset: { expires_at: 1 } },
          ...[null, later.toISOString(), later.getTime(), [later]].map((expires_at) => ({
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
          await isRefused(link)
          await documents.replaceOne({ token_hash }, record ?? {})
        }
        expect(await hasPassword(h, user, PASSWORD)).to.equal(true)
        expect((await h.reset(link, NEW)).mode).to.equal('done')
      })
    }
  })

  describe('what is no token of ours (TOK-04, TOK-05, INJ-01)', () => {
    let user: User
    let link: string
    let unknown: ReturnType<typeof shapeOf>

    before(async () => {
      ;({ user, link } = await userWithLink())
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

    const broken: Record<string, (token: string) => string> = {
      'with padding': (token) => `${token}=`,
      'with a line break': (token) => `${token}\n`,
      'with a line break inside': (token) => `${token.slice(0, 20)}\r\n ${token.slice(20)}`,
      'with a space in front': (token) => ` ${token}`,
      'with NUL': (token) => `${token}\0`,
      'with the end of a sentence': (token) => `${token}>.`,
    }
    for (const [what, change] of Object.entries(broken)) {
      it(`${what}, as a mail program leaves it: unknown in the form, read as it was mailed in the link`, async () => {
        const token = change(tokenOf(link))
        expect(shapeOf(await post(withToken(token)))).to.deep.equal(unknown)
        const opened = await agent.get(`${url}?token=${encodeURIComponent(token)}`)
        expect([opened.mode, opened.hidden['token']]).to.deep.equal(['form', tokenOf(link)])
      })
    }

    it('other parameters beside the token, as campaigns and mail programs add them, do not matter', async () => {
      const token = tokenOf(link)
      for (const query of [
        `token=${token}&utm_source=a&utm_source=b`,
        `utm_source=%FF&token=${token}`,
        `x=y&amp;token=${token}`,
        `token=${token}&token[]=x`,
        `token=3D${token}`,
      ]) {
        const opened = await agent.get(`${url}?${query}`)
        expect([opened.mode, opened.hidden['token']], query).to.deep.equal(['form', token])
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
    for (const [what, change] of Object.entries(malformed)) {
      it(`${what}: like an unknown one`, async () => {
        const token = change(tokenOf(link))
        expect(shapeOf(await post(withToken(token)))).to.deep.equal(unknown)
        expect(shapeOf(await agent.get(`${url}?token=${encodeURIComponent(token)}`))).to.deep.equal(
          unknown,
        )
      })
    }

    const shapes: Record<string, (token: string) => string> = {
      'no token at all': () => '',
      'a repeated token': (token) => `token=${token}&token=${token}`,
      'an array': (token) => `token[]=${token}`,
      'an operator': () => 'token[$ne]=x',
      'a pattern': () => 'token[$regex]=.*',
      'a path': (token) => `token.$eq=${token}`,
      'bytes that are not UTF-8': (token) => `token=${token}%FF`,
    }
    for (const [what, query] of Object.entries(shapes)) {
      it(`${what}: 400 and no 5xx`, async () => {
        const text = query(tokenOf(link))
        expect((await agent.get(`${url}?${text}`)).status).to.equal(400)
        expect((await post(`${text}&password=${NEW}&confirm_password=${NEW}`)).status).to.equal(400)
      })
    }

    it('a form that is JSON or multipart: 415', async () => {
      for (const type of ['application/json', 'multipart/form-data; boundary=b', 'text/plain']) {
        const answer = await agent.request('POST', url, {
          headers: { 'content-type': type },
          body: JSON.stringify(withToken(tokenOf(link))),
        })
        expect(answer.status, type).to.equal(415)
      }
    })

    it('a form of more than 64 KiB: 413, and any other method: 405', async () => {
      const form = { ...withToken(tokenOf(link)), x: 'x'.repeat(65_536) }
      expect((await post(form)).status).to.equal(413)
      for (const method of ['PUT', 'DELETE', 'PATCH']) {
        const answer = await agent.request(method, link)
        expect(answer.status).to.equal(405)
        expect(answer.headers.get('allow')).to.equal('GET, HEAD, POST')
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

  describe('a token of the other purpose (TOK-14)', () => {
    it('a verification token resets nothing, a reset token verifies nothing', async () => {
      const { user, link } = await userWithLink({ emailVerified: false })
      const before = h.mail.mails.length
      await agent.post(`${h.oauthUrl}/resend-verification`, { username: user.username })
      const verification = await eventually('the mail leaves', () => h.mail.mails[before]?.link)

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
})
