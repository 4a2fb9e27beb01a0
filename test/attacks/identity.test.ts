import { expect } from 'chai'
import type { NewMailJob } from '../../src/store/index.ts'
import type { User, UserStore } from '../../src/index.ts'
import { expectPage, createUserAgent } from '../support/user-agent.ts'
import { onEachStore, suiteHarness } from '../support/harness.ts'
import { ask, shapeOf } from '../support/observe.ts'
import type { Person } from '../support/person.ts'
import { instead } from '../support/records.ts'

type Texts = Record<string, string>

/** Users by name, with their address or more; by what somebody types, who is meant of them; and what means nobody. */
type Meant = [
  title: string,
  users: Record<string, string | Partial<User>>,
  typed: Texts,
  nobody?: string[],
]

const LOOKALIKES = [
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

const MEANT: Meant[] = [
  [
    'is nobody for a lookalike in any part of an address (IDN-01, IDN-02)',
    { mike: 'mike.kiss@offices.example' },
    { 'MIKE.KISS@offices.EXAMPLE': 'mike' },
    LOOKALIKES,
  ],
  [
    'is the one of two lookalikes that was typed (IDN-02)',
    { jose: 'a@x.example', 'jos\u00E9': 'b@x.example', JOSE: 'c@x.example' },
    { jose: 'jose', 'jos\u00E9': 'jos\u00E9', JOSE: 'JOSE' },
    ['jose\u0301'],
  ],
  [
    'is the owner of a verified address in either case of ASCII letters, and the stored one is mailed (IDN-04)',
    { ann: 'Ann@users.example' },
    { 'aNN@USERS.example': 'ann', 'Ann@users.example': 'ann' },
  ],
  [
    'is nobody for an unverified address, and that user by the username (ENU-12)',
    { una: { emailVerified: false } },
    { una: 'una' },
    ['una@users.example'],
  ],
  [
    'is nobody for the address with a tag, without its dots, or with one more (IDN-08)',
    { tagged: 'a.b+x@users.example' },
    { 'a.b+x@users.example': 'tagged' },
    ['a.b', 'ab+x', 'a.b+y', 'a.b+x@www'].map((name) => `${name}@users.example`),
  ],
  [
    'is always the owner of a verified address, whoever took it as a username (IDN-07)',
    {
      owner: 'owned@users.example',
      'owned@users.example': 'thief@evil.example',
      'OWNED@users.example': 'other@evil.example',
      squatter: { email: 'owned@users.example', emailVerified: false },
    },
    {
      'owned@users.example': 'owner',
      'OWNED@users.example': 'owner',
      'Owned@Users.Example': 'owner',
    },
  ],
  [
    'is nobody for a username that is the address of nobody, or of somebody whose address is not verified (IDN-13)',
    {
      'free@users.example': 'asker@evil.example',
      'taken@users.example': 'asker-too@evil.example',
      late: { email: 'taken@users.example', emailVerified: false },
      'own@users.example': 'Own@users.example',
      'my@users.example': { email: 'My@users.example', emailVerified: false },
    },
    { 'own@users.example': 'own@users.example', 'my@users.example': 'my@users.example' },
    ['free@users.example', 'taken@users.example'],
  ],
  [
    'is nobody, and never one at random, where an address is shared; each name finds its own (IDN-09)',
    { 'twin-1': 'shared@users.example', 'twin-2': 'shared@users.example' },
    { 'twin-1': 'twin-1', 'twin-2': 'twin-2' },
    Array<string>(5).fill('shared@users.example'),
  ],
  [
    'is nobody where several verified addresses match and none byte for byte',
    { 'pair-1': 'Pair@users.example', 'pair-2': 'pair@users.example' },
    { 'pair@users.example': 'pair-2' },
    ['PAIR@users.example'],
  ],
  [
    'is nobody for an account without a password, or that is disabled (IDN-12)',
    { robot: { passwordHash: undefined }, gone: { disabled: true } },
    {},
    ['robot', 'robot@users.example', 'gone', 'gone@users.example'],
  ],
]

describe('Who is meant by a name (IDN)', () => {
  const h = suiteHarness()

  for (const [title, users, typed, nobody = []] of MEANT) {
    it(title, async () => {
      const people = new Map<string, Person>()
      for (const [username, user] of Object.entries(users)) {
        const more = typeof user === 'string' ? { email: user } : user
        people.set(username, await h.addUser({ username, ...more }))
      }
      const mails = h.mail.mails.length
      const all = await Promise.all(nobody.map((each) => ask(h, each)))
      expect(all.map(({ reason }) => reason)).not.to.include(undefined)
      const expected: unknown[] = []
      for (const [each, username] of Object.entries(typed)) {
        all.push(await ask(h, each))
        const { id, email } = people.get(username) ?? {}
        expect(h.eventsOf('password_reset_requested').at(-1)?.accountId, each).to.equal(id)
        expected.push(email)
      }
      expect(h.mail.mails.slice(mails).flatMap(({ to }) => to)).to.deep.equal(expected)
      const shapes = all.map(({ answer }) => JSON.stringify(shapeOf(answer)))
      expect(new Set(shapes)).to.have.property('size', 1)
      expect(all[0]?.answer).to.include({ status: 200, mode: 'sent' })
    })
  }

  it('is somebody for up to 254 characters, and nobody beyond: the same answer, no look-up, not kept (IDN-11)', async () => {
    const longest = 'u'.repeat(254)
    await h.addUser({ username: longest, email: 'longest@users.example' })
    await h.addUser({ username: 'u'.repeat(255), email: 'too-long@users.example' })
    const known = await ask(h, longest)
    expect(h.mail.mails.at(-1)?.to).to.deep.equal(['longest@users.example'])
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
    expect(added).to.have.length(4)
    expect(JSON.stringify([added, h.events])).not.to.include('u'.repeat(256))
  })

  it('is nobody for an address or a lookalike at resend-verification', async () => {
    const uta = await h.addUser({ username: 'uta', emailVerified: false })
    const before = h.mail.mails.length
    for (const username of ['uta@users.example', 'u\u0167a', 'uta'.padEnd(255, 'a')]) {
      const url = `${h.oauthUrl}/resend-verification`
      expectPage(await createUserAgent().post(url, { username }), 200, 'verify-email', 'sent')
    }
    await uta.asksAgain()
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
          const others = [`${username}\u200b`, `${username}.`, `${username} x`]
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

    it('finds an address where a host answers an unknown name by a list with nothing in it', async () => {
      const ida = await newUser('Ida', { email: 'ida@users.example', emailVerified: true })
      const inAnyCase = async () => JSON.parse('[0]').map(() => undefined)
      least = { ...h.users, findByUsernameInAnyCase: inAnyCase }
      try {
        expect((await askedFor('ida@users.example'))?.accountId).to.equal(ida.id)
        expect((await askedFor('nobody-of-them'))?.reason).to.equal('unknown')
      } finally {
        least = undefined
      }
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
