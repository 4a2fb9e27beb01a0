import { expect } from 'chai'
import type { CreateIndexesOptions, IndexSpecification } from 'mongodb'
import { mongoStore } from '../../src/stores/mongodb/store.ts'
import { describeWithMongo, freshDatabase } from '../support/mongod.ts'
import { suiteDatabase } from '../support/suite-database.ts'

describeWithMongo('mongoStore().inspect() [full]', () => {
  const fresh = suiteDatabase()
  before(() => mongoStore(fresh.db).start())

  const inspect = async () => await mongoStore(fresh.db).inspect?.()

  /** That this and nothing else is wrong, and nothing any more after a start. */
  async function findsUntilStarted(...wrongIndexes: string[]) {
    expect(await inspect()).to.deep.equal({ wrongIndexes, isVolatile: false })
    expect(await inspect()).to.deep.equal({ wrongIndexes, isVolatile: false })
    await mongoStore(fresh.db).start()
    expect(await inspect()).to.deep.equal({ wrongIndexes: [], isVolatile: false })
  }

  it('finds nothing wrong after a start', async () => {
    expect(await inspect()).to.deep.equal({ wrongIndexes: [], isVolatile: false })
  })

  it('finds every index and every collection missing before the first start, and creates nothing', async () => {
    const { db, drop } = await freshDatabase()
    const all: string[] = []
    for (const collection of await fresh.db.collections())
      for (const { name } of await collection.indexes())
        all.push(`${collection.collectionName}.${name}`)
    const inspection = await mongoStore(db).inspect?.()
    expect(inspection?.wrongIndexes).to.have.members(all).and.to.include('session_cutoffs._id_')
    expect(await db.collections()).to.deep.equal([])
    await drop()
  })

  it('finds an index that was dropped', async () => {
    await fresh.db.collection('password_reset_tokens').dropIndex('one_live_per_user')
    await fresh.db.collection('mail_outbox').dropIndex('purge_at_ttl')
    await findsUntilStarted('password_reset_tokens.one_live_per_user', 'mail_outbox.purge_at_ttl')
  })

  it('finds the indexes of a collection that was dropped', async () => {
    await fresh.db.collection('rate_limits').drop()
    await findsUntilStarted('rate_limits._id_', 'rate_limits.key_unique', 'rate_limits.expire_ttl')
  })

  const others: [string, string, IndexSpecification, CreateIndexesOptions][] = [
    ['email_verification_tokens', 'token_hash_unique', { token_hash: 1 }, {}],
    ['rate_limits', 'expire_ttl', { expire: 1 }, { expireAfterSeconds: 60 }],
    ['rate_limits', 'expire_ttl', { expire: 1 }, {}],
    ['mail_outbox', 'of_account', { account_id: 1, kind: 1, requested_at: 1 }, {}],
    ['mail_outbox', 'of_account', { kind: 1, account_id: 1, requested_at: 1 }, { sparse: true }],
    [
      'password_reset_tokens',
      'one_live_per_user',
      { user_id: 1 },
      { unique: true, partialFilterExpression: { live: false } },
    ],
    [
      'pending_logins',
      'newest_of_account',
      { account_id: 1, created_at: -1 },
      { collation: { locale: 'en', strength: 2 } },
    ],
    ['pending_logins', 'newest_of_account', { account_id: 1, created_at: -1 }, { hidden: true }],
  ]
  for (const [collection, name, key, options] of others) {
    const what = JSON.stringify({ key, ...options })
    it(`finds that ${collection}.${name} is another one: ${what}`, async () => {
      const indexed = fresh.db.collection(collection)
      await indexed.dropIndex(name)
      await indexed.createIndex(key, { name, ...options })
      const wrongIndexes = [`${collection}.${name}`]
      expect(await inspect()).to.deep.equal({ wrongIndexes, isVolatile: false })
      await indexed.dropIndex(name)
      await findsUntilStarted(...wrongIndexes)
    })
  }

  it('leaves indexes and collections of others alone', async () => {
    await fresh.db.collection('mail_outbox').createIndex({ kind: 1 }, { name: 'of_the_host' })
    await fresh.db.createCollection('oidc_session')
    expect(await inspect()).to.deep.equal({ wrongIndexes: [], isVolatile: false })
  })

  it('finds the same whatever the host chose for its Db', async () => {
    const odd = fresh.client.db(fresh.db.databaseName, {
      promoteValues: false,
      raw: true,
      readPreference: 'secondaryPreferred',
    })
    expect(await mongoStore(odd).inspect?.()).to.deep.equal({ wrongIndexes: [], isVolatile: false })
  })
})
