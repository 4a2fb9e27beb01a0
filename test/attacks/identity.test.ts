import { expect } from 'chai'
import type { NewMailJob } from '../../src/index.ts'
import { ask, eventsOf, shapeOf } from '../support/observe.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { suiteHarness } from '../support/suite-harness.ts'

describe('Who is meant by a name (IDN)', () => {
  const h = suiteHarness()

  /** Who was mailed for what was typed; the answer is the same for all. */
  async function mailedFor(identifier: string): Promise<string[]> {
    const before = h.mail.mails.length
    const { answer } = await ask(h, identifier)
    expect([answer.status, answer.mode]).to.deep.equal([200, 'sent'])
    return h.mail.mails.slice(before).flatMap(({ to }) => to)
  }

  async function expectNobodyFor(typed: string[]) {
    const before = h.mail.mails.length
    const all = await Promise.all(typed.map((each) => ask(h, each)))
    const shapes = all.map(({ answer }) => JSON.stringify(shapeOf(answer)))
    expect(new Set(shapes)).to.have.property('size', 1)
    expect(all.map(({ reason }) => reason)).not.to.include(undefined)
    expect(h.mail.mails.slice(before)).to.deep.equal([])
  }

  it('is nobody for a lookalike in any part of an address (IDN-01, IDN-02)', async () => {
    await h.addUser({ username: 'mike', email: 'mike.kiss@offices.example' })
    const lookalikes = [
      'm\u0131ke.kiss@offices.example',
      'M\u0130KE.KISS@OFFICES.EXAMPLE',
      'mi\u212Ae.kiss@offices.example',
      'mike.ki\u017F\u017F@offices.example',
      'mike.ki\u00DF@offices.example',
      'mike.kiss@o\uFB03ces.example',
      'm\u00EDke.kiss@offices.example',
      'mi\u0308ke.kiss@offices.example',
      '\uFF4Dike.kiss@offices.example',
      '\u043Cike.kiss@offices.example',
      'mike.kiss@offices\u3002example',
      'mike.kiss@offices.example.',
      'mike\u00AD.kiss@offices.example',
      'mike.kiss\uFF20offices.example',
      '\uFEFFmike.kiss@offices.example',
    ]
    await expectNobodyFor(lookalikes)
    const mailed = await mailedFor('MIKE.KISS@offices.EXAMPLE')
    expect(mailed).to.deep.equal(['mike.kiss@offices.example'])
  })

  it('is the one of two lookalikes that was typed (IDN-02)', async () => {
    const names = { plain: 'jose', accent: 'jos\u00E9', upper: 'JOSE', decomposed: 'jose\u0301' }
    for (const [what, username] of Object.entries(names))
      await h.addUser({ username, email: `${what}@users.example` })
    for (const [what, username] of Object.entries(names))
      expect(await mailedFor(username)).to.deep.equal([`${what}@users.example`])
  })

  it('is nobody for the address with a tag, without its dots, or with one more (IDN-08)', async () => {
    await h.addUser({ username: 'tagged', email: 'a.b+x@users.example' })
    const others = ['a.b@users.example', 'ab+x@users.example', 'a.b+y@users.example']
    await expectNobodyFor([...others, 'a.b+x@www.users.example'])
    expect(await mailedFor('a.b+x@users.example')).to.deep.equal(['a.b+x@users.example'])
  })

  it('is always the owner of a verified address, whoever took it as a username (IDN-07)', async () => {
    const owner = await h.addUser({ username: 'owner', email: 'owned@users.example' })
    await h.addUser({ username: 'owned@users.example', email: 'thief@evil.example' })
    await h.addUser({ username: 'OWNED@users.example', email: 'other@evil.example' })
    for (const typed of ['owned@users.example', 'OWNED@users.example', 'Owned@Users.Example'])
      expect(await mailedFor(typed), typed).to.deep.equal([owner.email])
    const unverified = { email: 'owned@users.example', emailVerified: false }
    const squatter = await h.addUser({ username: 'squatter', ...unverified })
    expect(await mailedFor('owned@users.example')).to.deep.equal([owner.email])
    expect(eventsOf(h, 'password_reset_requested').at(-1)?.accountId).not.to.equal(squatter.id)
  })

  it('is nobody for a username that is the address of nobody, or of somebody whose address is not verified (IDN-13)', async () => {
    await h.addUser({ username: 'free@users.example', email: 'asker@evil.example' })
    await h.addUser({ username: 'taken@users.example', email: 'asker-too@evil.example' })
    await h.addUser({ username: 'late', email: 'taken@users.example', emailVerified: false })
    await expectNobodyFor(['free@users.example', 'taken@users.example'])
    for (const emailVerified of [true, false]) {
      const own = `own-${emailVerified}@users.example`
      await h.addUser({ username: own, email: own.replace('own', 'Own'), emailVerified })
      expect(await mailedFor(own)).to.deep.equal([own.replace('own', 'Own')])
    }
  })

  it('is nobody, and never one at random, where an address is shared; each name finds its own (IDN-09)', async () => {
    const twins = [
      await h.addUser({ username: 'twin-1', email: 'shared@users.example' }),
      await h.addUser({ username: 'twin-2', email: 'shared@users.example' }),
    ]
    await expectNobodyFor(Array(5).fill('shared@users.example'))
    for (const { username, email } of twins) {
      expect(await mailedFor(username)).to.deep.equal([email])
      expect(h.mail.mails.at(-1)?.mail.text).to.include(`Hello ${username},`)
    }
  })

  it('is somebody for up to 254 characters, and nobody beyond: the same answer, no look-up, not kept (IDN-11)', async () => {
    const longest = 'u'.repeat(254)
    await h.addUser({ username: longest, email: 'longest@users.example' })
    await h.addUser({ username: 'u'.repeat(255), email: 'too-long@users.example' })
    expect(await mailedFor(longest)).to.deep.equal(['longest@users.example'])
    const known = await ask(h, longest)
    const { findByUsername } = h.users
    const { add } = h.store.outbox
    const [lookedUp, added]: [string[], NewMailJob[]] = [[], []]
    h.store.outbox.add = (job) => {
      added.push(job)
      return add(job)
    }
    h.users.findByUsername = (username) => {
      lookedUp.push(username)
      return findByUsername(username)
    }
    try {
      for (const length of [1, 255, 4_000, 60_000]) {
        const typed = 'u'.repeat(length)
        const { answer, reason } = await ask(h, typed)
        expect([reason, shapeOf(answer)]).to.deep.equal(['unknown', shapeOf(known.answer)])
      }
    } finally {
      h.users.findByUsername = findByUsername
      h.store.outbox.add = add
    }
    expect(lookedUp).to.deep.equal(['u'])
    const url = `${h.oauthUrl}/forgot-password`
    expect((await createUserAgent().post(url, { identifier: '' })).status).to.equal(400)
    const tooLong = await createUserAgent().post(url, { identifier: 'u'.repeat(65_536) })
    expect(tooLong.status).to.equal(413)
    expect(added).to.have.length(4)
    expect(JSON.stringify([added, h.events])).not.to.include('u'.repeat(256))
  })

  it('is nobody for an account without a password, or that is disabled (IDN-12)', async () => {
    await h.addUser({ username: 'robot', passwordHash: undefined })
    await h.addUser({ username: 'gone', disabled: true })
    await expectNobodyFor(['robot', 'robot@users.example', 'gone', 'gone@users.example'])
  })

  it('is nobody for an address at resend-verification, in either case', async () => {
    const una = await h.addUser({ username: 'una', emailVerified: false })
    const url = `${h.oauthUrl}/resend-verification`
    const before = h.mail.mails.length
    const others = ['una@users.example', 'UNA', 'u\u0144a', 'una ', 'una'.padEnd(255, 'a')]
    for (const username of others) {
      const answer = await createUserAgent().post(url, { username })
      expect([answer.status, answer.mode]).to.deep.equal([200, 'sent'])
    }
    await createUserAgent().post(url, { username: 'una' })
    await h.mail.mailTo(una.email ?? '')
    expect(h.mail.mails.slice(before)).to.have.length(1)
  })
})
