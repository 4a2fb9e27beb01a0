import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import type { User, UserStore } from '../index.ts'

const EMAIL = 'Ann@Example.com'
const INVITED = { passwordHash: undefined, emailVerified: false }

/** Expects that one of twenty concurrent calls succeeds. Returns which one. */
async function winnerOf(act: (caller: number) => Promise<boolean>): Promise<number> {
  const answers = await Promise.all(Array.from({ length: 20 }, (_, caller) => act(caller)))
  expect(answers.filter(Boolean)).to.have.length(1)
  return answers.indexOf(true)
}

export function sampleUser(changes: Partial<User> = {}): User {
  return {
    id: 'ann',
    username: changes.id ?? 'Ann',
    email: EMAIL,
    emailVerified: true,
    passwordHash: '$2b$12$old',
    disabled: false,
    ...changes,
  }
}

/** Tests what an implementation of `UserStore` promises. `create` opens one for each test, with these users only. */
export function itIsAUserStore(
  name: string,
  create: (users: User[]) => Promise<{ users: UserStore; close(): Promise<void> }>,
): void {
  describe(`${name} is a UserStore`, function () {
    this.timeout(Math.max(this.timeout(), 20_000))
    let close = async () => {}

    async function having(...users: Partial<User>[]): Promise<UserStore> {
      const opened = await create(users.map(sampleUser))
      close = opened.close
      await opened.users.start?.()
      return opened.users
    }

    afterEach(() => close())

    it('finds a user by id, with every field and with the least', async () => {
      const bob = { id: 'bob', ...INVITED, email: undefined, disabled: true }
      const users = await having({}, bob)
      expect(await users.findById('ann')).to.deep.equal(sampleUser())
      expect(await users.findById('bob')).to.deep.equal(sampleUser(bob))
      const long = ['x'.repeat(300), '0'.repeat(24)]
      for (const typed of ['Ann', '', EMAIL, 'a b', 'ä', '$ne', ...long])
        expect(await users.findById(typed), typed).to.equal(undefined)
    })

    it('finds a username by its exact bytes', async () => {
      const users = await having({}, { id: 'kelvin', username: 'é' })
      expect(await users.findByUsername('Ann')).to.deep.equal(sampleUser())
      expect(await users.findByUsername('é')).to.include({ id: 'kelvin' })
      const others = ['ann', 'Ann ', ' Ann', 'Ann\0', 'Ànn', 'e\u0301', '', '\ud800']
      for (const other of [...others, '.*', '%', 'A_n', 'A\\nn'])
        expect(await users.findByUsername(other), JSON.stringify(other)).to.equal(undefined)
    })

    const letters =
      'm\u0131ke M\u0130KE mi\u212ae mi\u00adke m\u200bike mike\0 mike\u0301 \ud800mike'.split(' ')

    /** What `LIKE` would take for `mike`. */
    const wild = ['%', 'm%', 'mi_e', 'mi\\ke']

    it('finds every user of a username in either case of ASCII letters, if at all, and never takes one letter for another (IDN-14)', async function () {
      const users = await having(
        { id: 'mike', username: 'Mike', emailVerified: false, email: undefined },
        { id: 'two', username: 'MIKE', disabled: true },
        { id: 'blank', username: 'mike ' },
        { id: 'accent', username: 'mik\u00e9' },
      )
      const findAll = users.findByUsernameInAnyCase?.bind(users) ?? this.skip()
      const find = async (name: string) => (await findAll(name)).map(({ id }) => id)
      for (const typed of ['Mike', 'mike', 'MIKE', 'mIkE'])
        expect(await find(typed), typed).to.have.members(['mike', 'two'])
      expect(await find('MIKE ')).to.deep.equal(['blank'])
      expect(await find('MIK\u00e9')).to.deep.equal(['accent'])
      for (const typed of [...letters, ...wild, 'MIK\u00c9', ' mike', 'mik', 'mikee', '.*', '$ne'])
        expect(await find(typed), JSON.stringify(typed)).to.deep.equal([])
    })

    it('never takes one letter for another (IDN-01, IDN-02)', async () => {
      const users = await having(
        { email: 'mike@jose.example' },
        { id: 'accent', email: 'mike@jos\u00e9.example' },
      )
      const others = ['mike@jo\u017fe.example', 'mike@jose.example\0', 'mike+a@jose.example', '']
      const names = [...letters, ...wild].map((name) => `${name}@jose.example`)
      for (const typed of [...names, ...others])
        expect(await users.findByVerifiedEmail(typed), JSON.stringify(typed)).to.deep.equal([])
      expect(await users.findByVerifiedEmail('MIKE@JOSE.EXAMPLE')).to.have.length(1)
      expect(await users.findByVerifiedEmail('MIKE@JOS\u00e9.EXAMPLE')).to.have.length(1)
      expect(await users.findByVerifiedEmail('mike@jos\u00c9.example')).to.deep.equal([])
    })

    it('finds every user of an address in either case of ASCII letters, and none whose address is unverified (IDN-05)', async () => {
      const users = await having(
        {},
        { id: 'two', email: 'ANN@example.com' },
        { id: 'three', emailVerified: false },
      )
      for (const typed of [EMAIL, 'ann@example.com', 'ANN@EXAMPLE.COM']) {
        const found = await users.findByVerifiedEmail(typed)
        expect(found.map(({ id }) => id)).to.have.members(['ann', 'two'])
        expect(found).to.deep.include(sampleUser())
      }
    })

    it('finds every user of an address, verified or not, where it can be asked that', async () => {
      const users = await having(
        {},
        { id: 'two', email: 'ANN@example.com', emailVerified: false },
        { id: 'accent', email: '\u00e4nn@example.com', emailVerified: false },
        { id: 'none', email: undefined, emailVerified: false },
      )
      if (!users.findByEmail) return
      const found = await users.findByEmail('ann@example.com')
      expect(found.map(({ id }) => id)).to.have.members(['ann', 'two'])
      expect(found).to.deep.include(sampleUser())
      const others = ['ann', ' ann@example.com', 'ann@example.com\0', 'ann+a@example.com', '']
      for (const other of [...others, '%', 'an_@example.com'])
        expect(await users.findByEmail(other), JSON.stringify(other)).to.deep.equal([])
      expect(await users.findByEmail('ANN@EXAMPLE.COM')).to.have.length(2)
    })

    it('replaces the password hash only while it is the expected one, for one of 20 at once (3.3, effect 1)', async () => {
      const users = await having({}, { id: 'bob' })
      expect(await users.replacePasswordHash('ann', '$2b$12$OLD', 'next')).to.equal(false)
      expect(await users.replacePasswordHash('eve', '$2b$12$old', 'next')).to.equal(false)
      expect(await users.findById('ann')).to.deep.equal(sampleUser())
      const winner = await winnerOf((caller) =>
        users.replacePasswordHash('ann', '$2b$12$old', `hash ${caller}`),
      )
      const passwordHash = `hash ${winner}`
      expect(await users.findById('ann')).to.deep.equal(sampleUser({ passwordHash }))
      expect(await users.findById('bob')).to.include({ passwordHash: '$2b$12$old' })
    })

    it('verifies an address once, when 20 follow a link at once (3.2)', async () => {
      const users = await having({ emailVerified: false })
      await winnerOf(() => users.markEmailVerified('ann', EMAIL))
      expect(await users.findById('ann')).to.deep.equal(sampleUser())
      expect(await users.markEmailVerified('ann', EMAIL)).to.equal(false)
    })

    it('verifies no other address, and none of a disabled or unknown user', async () => {
      const users = await having(
        { emailVerified: false },
        { id: 'off', emailVerified: false, disabled: true },
      )
      for (const email of ['ann@example.com', ''])
        expect(await users.markEmailVerified('ann', email), email).to.equal(false)
      for (const id of ['off', 'eve'])
        expect(await users.markEmailVerified(id, EMAIL), id).to.equal(false)
      for (const id of ['ann', 'off'])
        expect(await users.findById(id)).to.include({ emailVerified: false })
    })

    it('makes an address unverified once, when 20 do at once, where it can; and verified again', async () => {
      const users = await having({}, { id: 'bob' })
      const unverify = users.markEmailUnverified?.bind(users)
      if (!unverify) return
      expect(await unverify('ann', 'ann@example.com')).to.equal(false)
      expect(await unverify('eve', EMAIL)).to.equal(false)
      expect(await users.findById('ann')).to.deep.equal(sampleUser())
      await winnerOf(() => unverify('ann', EMAIL))
      expect(await users.findById('ann')).to.deep.equal(sampleUser({ emailVerified: false }))
      expect(await users.findById('bob')).to.include({ emailVerified: true })
      expect(await users.markEmailVerified('ann', EMAIL)).to.equal(true)
    })

    it('replaces an unverified address by a proven one, where it can, for one of 20 at once (3.9)', async function () {
      const users = await having({ emailVerified: false }, { id: 'bob', emailVerified: false })
      const replace = users.replaceEmail?.bind(users) ?? this.skip()
      const winner = await winnerOf((caller) => replace('ann', EMAIL, `ann${caller}@example.com`))
      const email = `ann${winner}@example.com`
      expect(await users.findById('ann')).to.deep.equal(sampleUser({ email }))
      expect(await users.findById('bob')).to.include({ email: EMAIL, emailVerified: false })
      expect(await replace('ann', email, EMAIL), 'a verified one').to.equal(false)
    })

    it('verifies one address, when 10 prove the present one and 10 another at once (3.9)', async function () {
      const users = await having({ emailVerified: false })
      const replace = users.replaceEmail?.bind(users) ?? this.skip()
      const winner = await winnerOf((caller) =>
        caller % 2 === 0 ? users.markEmailVerified('ann', EMAIL) : replace('ann', EMAIL, 'b@c.de'),
      )
      const email = winner % 2 === 0 ? EMAIL : 'b@c.de'
      expect(await users.findById('ann')).to.deep.equal(sampleUser({ email }))
    })

    it('replaces no other address, and none that is verified, or of a disabled or unknown user (3.9)', async function () {
      const unverified = { emailVerified: false }
      const users = await having(
        unverified,
        { id: 'off', ...unverified, disabled: true },
        { id: 'bob' },
      )
      const replace = users.replaceEmail?.bind(users) ?? this.skip()
      const find = () => Promise.all(['ann', 'off', 'bob'].map((id) => users.findById(id)))
      const before = await find()
      for (const email of ['ann@example.com', ''])
        expect(await replace('ann', email, 'b@c.de'), email).to.equal(false)
      for (const id of ['off', 'bob', 'eve'])
        expect(await replace(id, EMAIL, 'b@c.de'), id).to.equal(false)
      expect(await find()).to.deep.equal(before)
      expect(await replace('ann', EMAIL, 'b@c.de')).to.equal(true)
    })

    it('sets the first password, if at all, of one of 20 callers, and makes the address verified in the same step (3.4)', async function () {
      const empty = { id: 'eve', ...INVITED, passwordHash: '' }
      const users = await having(INVITED, { id: 'bob', ...INVITED }, empty)
      const set = users.setFirstPassword?.bind(users) ?? this.skip()
      const winner = await winnerOf((caller) => set('ann', EMAIL, `hash ${caller}`))
      const passwordHash = `hash ${winner}`
      expect(await users.findById('ann')).to.deep.equal(sampleUser({ passwordHash }))
      expect(await users.findById('bob')).to.include(INVITED)
      expect(await set('eve', EMAIL, 'hash'), 'an empty hash is none').to.equal(true)
      expect(await users.replacePasswordHash('ann', passwordHash, 'next')).to.equal(true)
    })

    it('sets no first password of a user who has one, is disabled or unknown, or has another address', async function () {
      const users = await having(
        { emailVerified: false },
        { id: 'off', ...INVITED, disabled: true },
        { id: 'bob', ...INVITED },
        { id: 'eve', ...INVITED, email: undefined },
      )
      const set = users.setFirstPassword?.bind(users) ?? this.skip()
      const find = () => Promise.all(['ann', 'off', 'bob', 'eve'].map((id) => users.findById(id)))
      const before = await find()
      for (const id of ['ann', 'off', 'eve', 'nobody'])
        expect(await set(id, EMAIL, 'hash'), id).to.equal(false)
      for (const email of ['ann@example.com', ''])
        expect(await set('bob', email, 'hash'), email).to.equal(false)
      expect(await find()).to.deep.equal(before)
      expect(await set('bob', EMAIL, 'hash')).to.equal(true)
    })
  })
}
