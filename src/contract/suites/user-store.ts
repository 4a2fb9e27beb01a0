import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import type { User, UserStore } from '../index.ts'

/** Runs twenty concurrent calls. */
const atOnce = <T>(act: (caller: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: 20 }, (_, caller) => act(caller)))

export function sampleUser(changes: Partial<User> = {}): User {
  return {
    id: 'ann',
    username: changes.id ?? 'Ann',
    email: 'Ann@Example.com',
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
    this.timeout(20_000)
    let close = async () => {}

    async function having(...users: Partial<User>[]): Promise<UserStore> {
      const opened = await create(users.map(sampleUser))
      close = opened.close
      await opened.users.start?.()
      return opened.users
    }

    afterEach(() => close())

    it('finds a user by id, with every field and with the least', async () => {
      const none = { email: undefined, passwordHash: undefined, emailVerified: false }
      const bob = { id: 'bob', ...none, disabled: true }
      const users = await having({}, bob)
      expect(await users.findById('ann')).to.deep.equal(sampleUser())
      expect(await users.findById('bob')).to.deep.equal(sampleUser(bob))
      const long = ['x'.repeat(300), '0'.repeat(24)]
      for (const typed of ['Ann', '', 'Ann@Example.com', 'a b', 'ä', '$ne', ...long])
        expect(await users.findById(typed), typed).to.equal(undefined)
    })

    it('finds a username by its exact bytes', async () => {
      const users = await having({}, { id: 'kelvin', username: 'é' })
      expect(await users.findByUsername('Ann')).to.deep.equal(sampleUser())
      expect(await users.findByUsername('é')).to.include({ id: 'kelvin' })
      for (const other of ['ann', 'Ann ', ' Ann', 'Ann\0', 'Ànn', 'e\u0301', '', '.*', '\ud800'])
        expect(await users.findByUsername(other), JSON.stringify(other)).to.equal(undefined)
    })

    const letters =
      'm\u0131ke M\u0130KE mi\u212ae mi\u00adke m\u200bike mike\0 mike\u0301 \ud800mike'.split(' ')

    it('finds every user of a username in either case of ASCII letters, if at all, and never takes one letter for another (IDN-14)', async function () {
      const users = await having(
        { id: 'mike', username: 'Mike', emailVerified: false, email: undefined },
        { id: 'two', username: 'MIKE', disabled: true },
        { id: 'blank', username: 'mike ' },
        { id: 'accent', username: 'mik\u00e9' },
      )
      if (!users.findByUsernameInAnyCase) this.skip()
      const find = async (name: string) =>
        (await users.findByUsernameInAnyCase?.(name))?.map(({ id }) => id)
      for (const typed of ['Mike', 'mike', 'MIKE', 'mIkE'])
        expect(await find(typed), typed).to.have.members(['mike', 'two'])
      expect(await find('MIKE ')).to.deep.equal(['blank'])
      expect(await find('MIK\u00e9')).to.deep.equal(['accent'])
      for (const typed of [...letters, 'MIK\u00c9', ' mike', 'mik', 'mikee', '.*', '$ne'])
        expect(await find(typed), JSON.stringify(typed)).to.deep.equal([])
    })

    it('never takes one letter for another (IDN-01, IDN-02)', async () => {
      const users = await having(
        { email: 'mike@jose.example' },
        { id: 'accent', email: 'mike@jos\u00e9.example' },
      )
      const others = ['mike@jo\u017fe.example', 'mike@jose.example\0', 'mike+a@jose.example', '']
      for (const typed of [...letters.map((letter) => `${letter}@jose.example`), ...others])
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
      for (const typed of ['Ann@Example.com', 'ann@example.com', 'ANN@EXAMPLE.COM']) {
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
      for (const other of ['ann', ' ann@example.com', 'ann@example.com\0', 'ann+a@example.com', ''])
        expect(await users.findByEmail(other), JSON.stringify(other)).to.deep.equal([])
      expect(await users.findByEmail('ANN@EXAMPLE.COM')).to.have.length(2)
    })

    it('replaces the password hash only while it is the expected one, for one of 20 at once (3.3, effect 1)', async () => {
      const users = await having({}, { id: 'bob' })
      expect(await users.replacePasswordHash('ann', '$2b$12$OLD', 'next')).to.equal(false)
      expect(await users.replacePasswordHash('eve', '$2b$12$old', 'next')).to.equal(false)
      expect(await users.findById('ann')).to.deep.equal(sampleUser())
      const answers = await atOnce((caller) =>
        users.replacePasswordHash('ann', '$2b$12$old', `hash ${caller}`),
      )
      expect(answers.filter(Boolean)).to.have.length(1)
      const passwordHash = `hash ${answers.indexOf(true)}`
      expect(await users.findById('ann')).to.deep.equal(sampleUser({ passwordHash }))
      expect(await users.findById('bob')).to.include({ passwordHash: '$2b$12$old' })
    })

    it('verifies an address once, when 20 follow a link at once (3.2)', async () => {
      const users = await having({ emailVerified: false })
      const answers = await atOnce(() => users.markEmailVerified('ann', 'Ann@Example.com'))
      expect(answers.filter(Boolean)).to.have.length(1)
      expect(await users.findById('ann')).to.deep.equal(sampleUser())
      expect(await users.markEmailVerified('ann', 'Ann@Example.com')).to.equal(false)
    })

    it('verifies no other address, and none of a disabled or unknown user', async () => {
      const users = await having(
        { emailVerified: false },
        { id: 'off', emailVerified: false, disabled: true },
      )
      for (const email of ['ann@example.com', ''])
        expect(await users.markEmailVerified('ann', email), email).to.equal(false)
      for (const id of ['off', 'eve'])
        expect(await users.markEmailVerified(id, 'Ann@Example.com'), id).to.equal(false)
      for (const id of ['ann', 'off'])
        expect(await users.findById(id)).to.include({ emailVerified: false })
    })

    it('makes an address unverified once, when 20 do at once, where it can; and verified again', async () => {
      const users = await having({}, { id: 'bob' })
      const { markEmailUnverified: unverify } = users
      if (!unverify) return
      expect(await unverify('ann', 'ann@example.com')).to.equal(false)
      expect(await unverify('eve', 'Ann@Example.com')).to.equal(false)
      expect(await users.findById('ann')).to.deep.equal(sampleUser())
      const answers = await atOnce(() => unverify('ann', 'Ann@Example.com'))
      expect(answers.filter(Boolean)).to.have.length(1)
      expect(await users.findById('ann')).to.deep.equal(sampleUser({ emailVerified: false }))
      expect(await users.findById('bob')).to.include({ emailVerified: true })
      expect(await users.markEmailVerified('ann', 'Ann@Example.com')).to.equal(true)
    })

    it('sets the first password, if at all, of one of 20 callers, and makes the address verified in the same step (3.4)', async function () {
      const none = { passwordHash: undefined, emailVerified: false }
      const users = await having(none, { id: 'bob', ...none })
      if (!users.setFirstPassword) this.skip()
      const set = async (id: string, email: string, hash: string) =>
        users.setFirstPassword?.(id, email, hash)
      const answers = await atOnce((caller) => set('ann', 'Ann@Example.com', `hash ${caller}`))
      const winners = answers.flatMap((isSet, caller) => (isSet ? [caller] : []))
      expect(winners).to.have.length(1)
      const now = sampleUser({ passwordHash: `hash ${winners[0]}`, emailVerified: true })
      expect(await users.findById('ann')).to.deep.equal(now)
      expect(await users.findById('bob')).to.include(none)
      expect(await users.replacePasswordHash('ann', `hash ${winners[0]}`, 'next')).to.equal(true)
    })

    it('sets no first password of whoever has one, is disabled, has another address or is nobody', async function () {
      const none = { passwordHash: undefined, emailVerified: false }
      const users = await having(
        { emailVerified: false },
        { id: 'off', ...none, disabled: true },
        { id: 'bob', ...none },
        { id: 'eve', ...none, email: undefined },
      )
      if (!users.setFirstPassword) this.skip()
      const ids = ['ann', 'off', 'bob', 'eve']
      const before = await Promise.all(ids.map((id) => users.findById(id)))
      const set = async (id: string, email = 'Ann@Example.com') =>
        users.setFirstPassword?.(id, email, 'hash')
      for (const id of ['ann', 'off', 'eve', 'nobody']) expect(await set(id), id).to.equal(false)
      for (const email of ['ann@example.com', ''])
        expect(await set('bob', email), email).to.equal(false)
      expect(await Promise.all(ids.map((id) => users.findById(id)))).to.deep.equal(before)
      expect(await set('bob')).to.equal(true)
    })
  })
}
