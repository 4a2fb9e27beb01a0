import { expect } from 'chai'
import { ObjectId } from 'mongodb'
import { itIsAUserStore } from '../../src/contract/suites/index.ts'
import { sampleUser } from '../../src/contract/suites/user-store.ts'
import type { User } from '../../src/contract/index.ts'
import { memoryUsers } from '../../src/store/memory/store.ts'
import { mongoUsers } from '../../src/store/mongodb/users.ts'
import { describeWithMongo, suiteDatabase } from '../support/mongod.ts'

itIsAUserStore('memoryUsers()', async (initial) => ({
  users: memoryUsers(initial),
  close: async () => {},
}))

describe('memoryUsers()', () => {
  it('takes users later, and keeps its own copy of each', async () => {
    const users = memoryUsers()
    const ann = sampleUser()
    users.add(ann)
    ann.username = 'changed'
    const found = await users.findById('ann')
    expect(found).to.deep.equal(sampleUser())
    if (found) found.disabled = true
    expect(await users.findById('ann')).to.include({ disabled: false })
  })

  it('knows who may choose a password, and who signs in where', async () => {
    const more = { mayChoosePassword: true, signsInElsewhere: 'Google' }
    const users = memoryUsers([sampleUser(more)])
    expect(await users.findById('ann')).to.include(more)
    users.add(sampleUser())
    expect(await users.findById('ann')).not.to.have.any.keys(...Object.keys(more))
  })

  it('takes an empty hash for none, as SQL hosts have it, and sets the first password in its place', async () => {
    for (const none of ['', null]) {
      const users = memoryUsers([sampleUser({ passwordHash: none as never })])
      expect(await users.findById('ann')).to.include({ passwordHash: undefined })
      expect(await users.setFirstPassword?.('ann', 'Ann@Example.com', 'first')).to.equal(true)
      expect(await users.findById('ann')).to.include({ passwordHash: 'first' })
    }
  })

  it('takes one without flags for unverified and enabled', async () => {
    const { id, username, email } = sampleUser()
    const users = memoryUsers([{ id, username, email } as User])
    expect(await users.findById(id)).to.include({ emailVerified: false, disabled: false })
    expect(await users.findByVerifiedEmail(email ?? '')).to.deep.equal([])
    expect(await users.markEmailVerified(id, email ?? '')).to.equal(true)
  })
})

interface HostUser {
  _id: string | ObjectId
  username: string
  email?: string
  email_verified: boolean
  password_hash?: string
  password_changed_at?: Date
  disabled?: boolean
}

function toHostUser(user: User): HostUser {
  return {
    _id: user.id,
    username: user.username,
    ...(user.email !== undefined && { email: user.email }),
    email_verified: user.emailVerified,
    ...(user.passwordHash !== undefined && { password_hash: user.passwordHash }),
    ...(user.disabled && { disabled: true }),
  }
}

describeWithMongo('mongoUsers()', () => {
  const fresh = suiteDatabase()

  const ann = toHostUser(sampleUser())
  const unverified = { ...ann, email_verified: false }

  async function having(...documents: object[]) {
    const collection = fresh.db.collection('users')
    await collection.deleteMany({})
    if (documents.length > 0) await collection.insertMany(documents)
    const users = mongoUsers(collection)
    await users.start?.()
    return users
  }

  itIsAUserStore('mongoUsers()', async (initial) => {
    // A collection with the host's own type is taken as it is.
    const collection = fresh.db.collection<HostUser>('users')
    await collection.deleteMany({})
    await collection.insertMany(initial.map(toHostUser))
    return { users: mongoUsers(collection), close: async () => {} }
  })

  it('knows the language of a user where it is a text', async () => {
    for (const locale of ['pt-BR', '', 7, ['de'], { $gt: '' }, null]) {
      const found = await (await having({ ...ann, locale })).findByUsername('Ann')
      expect(found?.locale).to.equal(locale === 'pt-BR' ? locale : undefined)
    }
    const users = await having(ann)
    expect(await users.findByUsername('Ann')).not.to.have.property('locale')
  })

  it('knows who may choose a password, and who signs in where, by true and by a text alone', async () => {
    for (const may_choose_password of [true, 'true', 1, [true], {}, null, false]) {
      const found = await (await having({ ...ann, may_choose_password })).findById('ann')
      const isAllowed = may_choose_password === true
      expect(found?.mayChoosePassword).to.equal(isAllowed ? true : undefined)
    }
    for (const signs_in_elsewhere of ['Google', '', 7, ['Google'], { $gt: '' }, null]) {
      const found = await (await having({ ...ann, signs_in_elsewhere })).findById('ann')
      const isNamed = signs_in_elsewhere === 'Google'
      expect(found?.signsInElsewhere).to.equal(isNamed ? 'Google' : undefined)
    }
    const found = await (await having(ann)).findById('ann')
    expect(found).not.to.have.any.keys('mayChoosePassword', 'signsInElsewhere')
  })

  it('knows a user by the string form of an ObjectId, and writes down when the password changed', async () => {
    const _id = new ObjectId()
    const users = await having({ ...unverified, _id })
    const id = _id.toHexString()
    expect(await users.findByUsername('Ann')).to.include({ id })
    expect(await users.findById(id)).to.include({ id })
    expect(await users.findById(id.toUpperCase())).to.equal(undefined)
    expect(await users.markEmailVerified(id, 'Ann@Example.com')).to.equal(true)
    expect(await users.replacePasswordHash(id, '$2b$12$old', 'next')).to.equal(true)
    expect(await users.findById(id)).to.include({ emailVerified: true, passwordHash: 'next' })
    const document = await fresh.db.collection<HostUser>('users').findOne({ _id })
    expect(document?.password_changed_at?.getTime()).to.be.closeTo(Date.now(), 60_000)
  })

  it('takes nothing but true for verified, and anything set for disabled', async () => {
    for (const email_verified of ['true', 1, [true], {}, null, undefined]) {
      const users = await having({ ...ann, email_verified })
      expect(await users.findById('ann')).to.include({ emailVerified: false })
      expect(await users.findByVerifiedEmail('ann@example.com')).to.deep.equal([])
    }
    for (const disabled of [true, 'false', 0, '', {}, [], [false], false, null]) {
      const isDisabled = disabled !== false && disabled !== null
      const users = await having({ ...unverified, disabled })
      expect(await users.findById('ann')).to.include({ disabled: isDisabled })
      expect(await users.markEmailVerified('ann', 'Ann@Example.com')).to.equal(!isDisabled)
    }
  })

  it('takes an empty or odd hash or address for none, and one whose _id is odd for nobody (TOK-04)', async () => {
    for (const odd of ['', null, 1, ['x'], {}]) {
      const users = await having({ ...ann, password_hash: odd, email: odd })
      expect(await users.findById('ann')).to.include({ passwordHash: undefined, email: undefined })
      expect(await users.findByVerifiedEmail('')).to.deep.equal([])
    }
    const users = await having({ ...ann, username: ['Ann'], email: ['Ann@Example.com'] })
    expect(await users.findByUsername('Ann')).to.equal(undefined)
    expect(await users.findByUsernameInAnyCase?.('Ann')).to.deep.equal([])
    expect(await users.findByVerifiedEmail('Ann@Example.com')).to.deep.equal([])
    const numbered = await having({ ...ann, _id: 7 })
    expect(await numbered.findByUsername('Ann')).to.equal(undefined)
    expect(await numbered.findByVerifiedEmail('Ann@Example.com')).to.deep.equal([])
    expect(await numbered.findById('7')).to.equal(undefined)
  })

  it('answers false where the host allows an address to one user, and another has it (RACE-07)', async () => {
    const users = await having(unverified, { ...ann, _id: 'bob', username: 'bob' })
    const collection = fresh.db.collection('users')
    const ofVerified = { unique: true, partialFilterExpression: { email_verified: true } }
    const name = await collection.createIndex({ email: 1 }, ofVerified)
    expect(await users.markEmailVerified('ann', 'Ann@Example.com')).to.equal(false)
    expect(await users.findById('ann')).to.include({ emailVerified: false })
    await collection.dropIndex(name)
  })

  it('compares bytes, whatever collation the collection has', async () => {
    const collation = { locale: 'en', strength: 1 }
    const collection = await fresh.db.createCollection<HostUser>('loose', { collation })
    await collection.insertOne(unverified)
    const users = mongoUsers(collection)
    await users.start?.()
    expect(await users.findByUsername('Ann')).to.include({ id: 'ann' })
    expect(await users.findByUsername('ann')).to.equal(undefined)
    expect(await users.findById('ANN')).to.equal(undefined)
    expect(await users.replacePasswordHash('ann', '$2b$12$OLD', 'next')).to.equal(false)
    expect(await users.markEmailVerified('ann', 'ann@example.com')).to.equal(false)
  })

  it('creates its indexes beside those that the host has', async () => {
    await fresh.db.collection('users').createIndex({ username: 1 }, { unique: true })
    await having(ann)
    const names = (await fresh.db.collection('users').indexes()).map(({ name }) => name)
    const ours = ['username', 'username_in_any_case', 'verified_email']
    const all = ['username_1', ...ours.map((name) => `account_flows_${name}`)]
    expect(names).to.include.members(all)
    await fresh.db.collection('users').dropIndex('username_1')
  })

  it('says what to do when two users have one username, without naming it', async () => {
    const collection = fresh.db.collection<HostUser>('twins')
    await collection.insertMany([ann, { ...ann, _id: 'bob' }])
    const refusal: unknown = await mongoUsers(collection)
      .start?.()
      .catch((error) => error)
    expect(refusal).to.include({ code: 'ERR_STORE_INDEX' })
    expect(String(refusal)).to.match(/"account_flows_username" of the collection "twins"/)
    expect(String(refusal)).not.to.include('Ann')
  })
})
