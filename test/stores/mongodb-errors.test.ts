import { expect } from 'chai'
import { duplicatesIn } from '../../src/stores/mongodb/errors.ts'
import { describeWithReplicaSet, freshDatabase, type FreshDatabase } from '../support/mongod.ts'

describeWithReplicaSet(
  'A command with many inserts of which some find their key taken [full]',
  () => {
    let fresh: FreshDatabase
    before(async () => {
      fresh = await freshDatabase('replica set')
      await fresh.db
        .collection('things')
        .createIndex({ name: 1 }, { name: 'name_unique', unique: true })
    })
    beforeEach(async () => {
      await things().deleteMany()
      await things().insertOne({ _id: 'a', name: 'apple' })
    })
    after(() => fresh.drop())

    const things = () => fresh.db.collection<{ _id: string; name: string }>('things')
    const insert = (w: number, ...ids: [_id: string, name: string][]) =>
      things().insertMany(
        ids.map(([_id, name]) => ({ _id, name })),
        { ordered: false, writeConcern: { w } },
      )

    it('tells which they are, and has done the others', async () => {
      const places = await duplicatesIn(insert(1, ['b', 'berry'], ['a', 'again'], ['c', 'cherry']))
      expect([...places]).to.deep.equal([1])
      expect(await things().countDocuments()).to.equal(3)
    })

    it('tells of none where all are done', async () => {
      expect([...(await duplicatesIn(insert(1, ['b', 'berry'])))]).to.deep.equal([])
    })

    it('fails where a key is taken in another index than the one that is meant', async () => {
      const found = await duplicatesIn(insert(1, ['b', 'apple']), 'name_unique')
      expect([...found]).to.deep.equal([0])
      const refused = await duplicatesIn(
        insert(1, ['b', 'apple'], ['a', 'again']),
        'name_unique',
      ).catch((error: unknown) => error)
      expect(refused).to.be.instanceOf(Error)
    })

    it('fails where the write concern does, although no write failed but for its key', async () => {
      const refused = await duplicatesIn(insert(2, ['a', 'again'], ['b', 'berry'])).catch(
        (error: unknown) => error,
      )
      expect(refused).to.be.instanceOf(Error).with.property('code', 100)
    })
  },
)
