import { expect } from 'chai'
import { expectPage } from '../support/expect-page.ts'
import type { User } from '../../src/index.ts'
import { onBothStores } from '../support/both-stores.ts'
import { isIdle } from '../support/jobs.ts'
import { ask, dump, eventsOf, sha256, shapeOf, tokenOf, usableRecord } from '../support/observe.ts'
import { userWithLink } from '../support/reset-links.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { moveTime } from '../support/time.ts'
import { createUserAgent } from '../support/user-agent.ts'

describe('POST {oauth_path}/forgot-password (4.2)', () => {
  const agent = createUserAgent()
  const h = suiteHarness()
  let ann: User

  before(async () => {
    ann = await h.addUser({ username: 'ann', email: 'Ann@users.example' })
  })

  /** Asks with this identifier, and answers the addresses that got a mail for it. */
  async function mailedFor(identifier: string): Promise<string[]> {
    const before = h.mail.mails.length
    const { reason } = await ask(h, identifier)
    const to = h.mail.mails.slice(before).flatMap((mail) => mail.to)
    expect(to.length === 0).to.equal(reason !== undefined)
    return to
  }

  async function asksFor(user: User): Promise<string> {
    const link = await h.resetLink(user)
    expect(tokenOf(link)).to.match(/^[A-Za-z0-9_-]{43}$/)
    return link
  }

  // That it is the same for everybody is in test/secrecy/same-work.test.ts.
  describe('shows the success message (4.2.1)', () => {
    it('a page that says that a mail was sent if there is such an account', async () => {
      const { answer } = await ask(h, 'ann')
      expectPage(answer, 200, 'forgot-password', 'sent')
      expect(answer.text).to.include('If there is an account with that username')
    })

    it('while SMTP is not configured too; the mail leaves once it is (SET-11)', async () => {
      const { email = '' } = await h.addUser({ username: 'patient' })
      const expected = shapeOf((await ask(h, 'ann')).answer)
      await h.put({ smtp_host: '' })
      // Both are answered while no mail can leave.
      expect(shapeOf(await h.forgot('nobody-at-all'))).to.deep.equal(expected)
      expect(shapeOf(await h.forgot('patient'))).to.deep.equal(expected)
      await h.put({ smtp_host: '127.0.0.1' })
      await h.mail.mailTo(email)
    })
  })

  // Lookalikes, shared addresses, and those who took one as a username are in test/attacks/identity.test.ts.
  describe('matches a user by username, or by an address only when it is verified (4.2.3)', () => {
    it('matches exactly the stored bytes of a username', async () => {
      await h.addUser({ username: 'Bob' })
      expect(await mailedFor('Bob')).to.deep.equal(['Bob@users.example'])
      for (const other of ['bob', ' Bob', 'Bob ', 'Bob\n', 'Bo', 'Вob']) {
        expect(await mailedFor(other), JSON.stringify(other)).to.deep.equal([])
      }
    })

    it('matches a verified address in either case of ASCII letters, and mails the stored one (IDN-04)', async () => {
      expect(await mailedFor('aNN@USERS.example')).to.deep.equal(['Ann@users.example'])
      expect(await mailedFor('Ann@users.example')).to.deep.equal(['Ann@users.example'])
    })

    it('matches nobody by an unverified address, and that user by the username (ENU-12)', async () => {
      const user = await h.addUser({ username: 'una', emailVerified: false })
      expect(await mailedFor('una@users.example')).to.deep.equal([])
      expect(await mailedFor('una')).to.deep.equal([user.email])
      expect((await h.users.findById(user.id))?.emailVerified).to.equal(false)
    })

    it('mails nobody where several verified addresses match and none byte for byte (D22)', async () => {
      await h.addUser({ username: 'pair1', email: 'Pair@users.example' })
      await h.addUser({ username: 'pair2', email: 'pair@users.example' })
      expect(await mailedFor('PAIR@users.example')).to.deep.equal([])
      expect(eventsOf(h, 'password_reset_requested').at(-1)?.reason).to.equal('ambiguous')
      expect(await mailedFor('pair@users.example')).to.deep.equal(['pair@users.example'])
    })
  })

  describe('generates a reset token (2.1, 3.1)', () => {
    it('of 32 random bytes as base64url, another one each time', async () => {
      const tokens = []
      for (let i = 0; i < 3; i += 1) tokens.push(tokenOf(await asksFor(ann)))
      for (const token of tokens) expect(Buffer.from(token, 'base64url')).to.have.length(32)
      expect(new Set(tokens.map((token) => token.slice(0, 4)))).to.have.property('size', 3)
    })

    it('that is valid for 1 hour by default', async () => {
      const record = await usableRecord(h, await asksFor(ann))
      expect(Number(record?.expiresAt) - Number(record?.createdAt)).to.equal(3_600_000)
    })

    it('and invalidates every earlier unused one of that user, and of nobody else', async () => {
      const other = await h.addUser({ username: 'other' })
      const others = await asksFor(other)
      const links = [await asksFor(ann), await asksFor(ann), await asksFor(ann)]
      const statuses = []
      for (const link of [...links, others]) statuses.push((await agent.get(link)).status)
      expect(statuses).to.deep.equal([400, 400, 200, 200])
    })

    it('and invalidates the earlier one also while the mail cannot be sent (D20)', async () => {
      const user = await h.addUser({ username: 'waiting' })
      const earlier = await asksFor(user)
      await h.put({ smtp_port: '1' })
      await ask(h, 'waiting')
      expect((await agent.get(earlier)).status).to.equal(400)
      await h.put({ smtp_port: String(h.mail.port) })
      const { link } = await h.mail.mailTo(user.email ?? '', 2)
      expect((await agent.get(link)).mode).to.equal('form')
    })

    it('and the newest request wins over an older one that is tried again later (D20)', async () => {
      const user = await h.addUser({ username: 'retried' })
      await h.put({ smtp_port: '1' })
      await ask(h, 'retried')
      await h.put({ smtp_port: String(h.mail.port) })
      await ask(h, 'retried')
      const { link } = h.mail.mails.at(-1) ?? { link: '' }
      expect(await usableRecord(h, link)).to.include({ userId: user.id })
      await moveTime(60_000)
      await isIdle(h)
      expect((await agent.get(link)).mode).to.equal('form')
    })
  })
})

onBothStores('A reset token of POST {oauth_path}/forgot-password', (technology) => {
  const h = suiteHarness({ technology })

  it('and stores only its SHA-256 in lower-case hex; the raw token is nowhere (5.5, TOK-02)', async () => {
    const { user, link } = await userWithLink(h)
    const token = tokenOf(link)
    const record = await usableRecord(h, link)
    expect(record).to.include({ userId: user.id, email: user.email, tokenHash: sha256(token) })
    const stored = await dump(h)
    const bytes = Buffer.from(token, 'base64url')
    for (const form of [token, bytes.toString('hex'), bytes.toString('base64')]) {
      expect(stored).not.to.include(form)
    }
    if (!h.db) return
    const documents = h.db.collection('password_reset_tokens')
    const found = await documents.findOne({ token_hash: sha256(token) })
    expect(found).to.include({ user_id: user.id, used_at: null, invalidated_at: null })
    expect(stored).to.include(sha256(token))
  })

  it('and leaves exactly one live when 20 requests arrive at once (RACE-03, ENU-13)', async () => {
    await h.addUser({ username: 'busy' })
    const all = await Promise.all(Array.from({ length: 20 }, () => ask(h, 'busy')))
    const shapes = all.map(({ answer }) => JSON.stringify(shapeOf(answer)))
    expect(new Set(shapes)).to.have.property('size', 1)
    expect(all[0]?.answer.mode).to.equal('sent')
    const mails = h.mail.mails.filter(({ to }) => to.includes('busy@users.example'))
    const usable: string[] = []
    for (const { link } of mails) if (await usableRecord(h, link)) usable.push(link)
    expect(usable).to.have.length(1)
    expect((await h.reset(usable[0] ?? '', 'a new password')).mode).to.equal('done')
  })
})
