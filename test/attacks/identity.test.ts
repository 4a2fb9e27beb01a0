import { expect } from 'chai'
import type { NewMailJob } from '../../src/records/index.ts'
import type { User, UserStore } from '../../src/index.ts'
import { expectPage, createUserAgent } from '../support/user-agent.ts'
import { onEachStore, suiteHarness } from '../support/harness.ts'
import { ask, shapeOf } from '../support/observe.ts'
import { instead } from '../support/records.ts'
import { moveTime } from '../support/time.ts'

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
    expect(h.eventsOf('password_reset_requested').at(-1)?.accountId).not.to.equal(squatter.id)
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
    const [lookedUp, added]: [string[], NewMailJob[]] = [[], []]
    const noted =
      <Given, Answer>(list: Given[], real: (given: Given) => Answer) =>
      (given: Given) => {
        list.push(given)
        return real(given)
      }
    await instead(
      h.store.outbox,
      'add',
      (add) => noted(added, add),
      () =>
        instead(
          h.users,
          'findByUsername',
          (find) => noted(lookedUp, find),
          async () => {
            for (const length of [1, 255, 4_000, 60_000]) {
              const { answer, reason } = await ask(h, 'u'.repeat(length))
              expect([reason, shapeOf(answer)]).to.deep.equal(['unknown', shapeOf(known.answer)])
            }
          },
        ),
    )
    expect(lookedUp).to.deep.equal(['u'])
    expect((await h.forgot('')).status).to.equal(400)
    expect((await h.forgot('u'.repeat(65_536))).status).to.equal(413)
    expect(added).to.have.length(4)
    expect(JSON.stringify([added, h.events])).not.to.include('u'.repeat(256))
  })

  it('is nobody for an account without a password, or that is disabled (IDN-12)', async () => {
    await h.addUser({ username: 'robot', passwordHash: undefined })
    await h.addUser({ username: 'gone', disabled: true })
    await expectNobodyFor(['robot', 'robot@users.example', 'gone', 'gone@users.example'])
  })

  it('is nobody for an address or a lookalike at resend-verification', async () => {
    const una = await h.addUser({ username: 'una', emailVerified: false })
    const before = h.mail.mails.length
    for (const username of ['una@users.example', 'u\u0144a', 'una'.padEnd(255, 'a')]) {
      const url = `${h.oauthUrl}/resend-verification`
      expectPage(await createUserAgent().post(url, { username }), 200, 'verify-email', 'sent')
    }
    await una.asksAgain()
    expect(h.mail.mails.slice(before)).to.have.length(1)
  })
})

onEachStore(
  'Who is meant by a name with blanks around it, or in another case (IDN-14)',
  (technology) => {
    const lookUps: string[] = []
    let least: UserStore | undefined
    const h = suiteHarness({
      technology,
      settings: { mails_per_account_per_hour: '0' },
      flows: { users: withLookUps(() => least ?? h.users, lookUps) },
    })
    before(async () => h.users.start?.())

    let added = 0
    /** A user with an address of their own. */
    const newUser = (username: string, changes: Partial<User> = {}) =>
      h.addUser({
        username,
        email: `${(added += 1)}-${username.trim()}@users.example`,
        emailVerified: false,
        ...changes,
      })

    const forms = {
      'forgot-password': { field: 'identifier', kind: 'password_reset' },
      'resend-verification': { field: 'username', kind: 'email_verification' },
    }
    for (const [path, { field, kind }] of Object.entries(forms)) {
      /** Whose account it was, or why nobody's; and what was looked up. */
      async function meant(typed: string) {
        const before = h.events.length
        lookUps.length = 0
        const answer = await createUserAgent().post(`${h.oauthUrl}/${path}`, { [field]: typed })
        expect([answer.status, answer.mode]).to.deep.equal([200, 'sent'])
        await h.isIdle()
        const event = h.events.slice(before).find(({ type }) => type === `${kind}_requested`)
        return event?.accountId ?? event?.reason
      }

      async function expectMeant(typed: string[], meaning: string) {
        for (const each of typed) expect(await meant(each), JSON.stringify(each)).to.equal(meaning)
      }

      describe(`at ${path}`, () => {
        const name = (text: string) => `${text}-${path}`

        it('is the one without the blanks, but first the one who has them', async () => {
          const { id, username } = await newUser(name('ann'))
          await expectMeant([` ${username}`, `${username} `, `\t${username}\u00a0\u3000\n`], id)
          const others = [`${username}\u200b`, `${username}.`, `${username} x`, '  ']
          await expectMeant(others, 'unknown')
          const blank = await newUser(`${username} `, { email: 'blank@evil.example' })
          await expectMeant([blank.username], blank.id)
          await expectMeant([username, ` ${username}`], id)
        })

        it('is the only one of the name in another case, nobody where there are two, and never another where there is the very name', async () => {
          const carol = await newUser(name('carol'))
          const typed = [name('Carol'), name('CAROL'), ` ${name('caroL')} `]
          await expectMeant(typed, carol.id)
          await expectMeant(['c\u0430rol', 'carol\u0301', 'car\u00f6l'].map(name), 'unknown')
          const other = await newUser(name('Carol'), { disabled: true })
          await expectMeant([name('Carol'), ` ${name('Carol')}`], other.id)
          await expectMeant([name('carol')], carol.id)
          await expectMeant(typed.slice(1), 'ambiguous')
        })

        it('is looked up alike, whether there is somebody or not', async () => {
          await newUser(name('dora'))
          await newUser(name('DORA'))
          for (const blanks of ['', ' ']) {
            const seen = new Set<string>()
            for (const typed of ['dora', 'DORA', 'Dora', 'nobody']) {
              await meant(name(typed) + blanks)
              seen.add(lookUps.join())
            }
            expect([...seen]).to.have.length(1)
          }
        })
      })
    }

    async function askedFor(typed: string) {
      await ask(h, typed)
      return h.eventsOf('password_reset_requested').at(-1)
    }

    it('is the owner of a verified address with blanks around it, and of nothing else with an at sign', async () => {
      const owner = await h.addUser({ username: 'owner', email: 'owned@users.example' })
      await h.addUser({ username: ' owned@users.example', email: 'thief@evil.example' })
      await h.addUser({ username: 'Free@users.example', email: 'asker@evil.example' })
      const owned = [' owned@users.example', 'OWNED@users.example\u00a0', '\towned@users.example ']
      for (const typed of owned)
        expect((await askedFor(typed))?.accountId, JSON.stringify(typed)).to.equal(owner.id)
      for (const typed of [
        'free@users.example',
        ' Free@users.example',
        'ow ned@users.example',
        '@',
      ])
        expect((await askedFor(typed))?.reason, JSON.stringify(typed)).to.equal('unknown')
      const own = await newUser('Own@users.example', { email: 'own@users.example' })
      expect((await askedFor(' own@users.example'))?.accountId).to.equal(own.id)
    })

    it('asks for no more mails and for none sooner by blanks and cases (RATE-04)', async () => {
      const eve = await h.addUser({ username: 'eve' })
      await h.put({ mails_per_account_per_hour: '1', resend_cooldown: '1h' })
      try {
        await ask(h, 'eve')
        const spellings = ['Eve', ' eve', 'eVE ', 'eve@users.example', ' EVE@users.example']
        for (const typed of spellings)
          expect((await ask(h, typed)).reason, typed).to.equal('throttled')
        expect(eve.mailCount()).to.equal(1)
        // A database keeps its own time.
        if (technology !== 'memory') return
        await moveTime(600_000)
        for (const typed of ['EVE', ' eve ', ' Eve@users.example'])
          expect((await h.forgot(typed)).text, typed).to.match(/data-seconds="(2[0-9]{3}|3000)"/)
        expect((await h.forgot('evening')).text).to.include('data-seconds="3600"')
      } finally {
        await h.put({ mails_per_account_per_hour: '0', resend_cooldown: '0s' })
      }
      expect((await ask(h, ' EVE')).reason).to.equal(undefined)
    })

    it('needs no host that looks names up in any case: the others find all but those', async () => {
      const finn = await h.addUser({ username: 'finn' })
      const { findByUsernameInAnyCase: _, ...others } = h.users
      least = others
      try {
        expect((await askedFor('Finn'))?.reason).to.equal('unknown')
        expect((await askedFor(' finn'))?.accountId).to.equal(finn.id)
      } finally {
        least = undefined
      }
      expect((await askedFor('Finn'))?.accountId).to.equal(finn.id)
    })
  },
)

/** The users of the host, with what they were asked by. */
function withLookUps(users: () => UserStore, lookUps: string[]): UserStore {
  const noted =
    <Asked, Found>(name: string, find: (asked: Asked) => Promise<Found>) =>
    async (asked: Asked) => {
      lookUps.push(name)
      return find(asked)
    }
  return {
    findById: (id) => users().findById(id),
    findByUsername: noted('name', (name: string) => users().findByUsername(name)),
    findByUsernameInAnyCase: noted(
      'any case',
      async (name: string) => (await users().findByUsernameInAnyCase?.(name)) ?? [],
    ),
    findByVerifiedEmail: noted('address', (email: string) => users().findByVerifiedEmail(email)),
    replacePasswordHash: (id, expected, next) => users().replacePasswordHash(id, expected, next),
    markEmailVerified: (id, email) => users().markEmailVerified(id, email),
  }
}
