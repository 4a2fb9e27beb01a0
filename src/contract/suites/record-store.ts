import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { ANY } from '../../store/record-store.ts'
import type { Change, Fields, Kind, Query, RecordStore, Stored } from '../../store/record-store.ts'

const THINGS: Kind = {
  name: 'contract_things',
  fields: {
    owner: 'text',
    live_of: 'text',
    count: 'number',
    is_open: 'boolean',
    made_at: 'time',
    due_at: 'time',
    parameters: 'json',
  },
  required: ['owner'],
  indexes: [['owner', 'due_at'], ['owner', 'is_open', 'count'], ['made_at']],
  unique: ['live_of'],
  insertedAt: 'made_at',
}

const OTHERS: Kind = {
  name: 'contract_others',
  fields: { owner: 'text', purge_at: 'time' },
  required: [],
  indexes: [['owner']],
  unique: [],
  purgedAt: 'purge_at',
}

/** Texts that some databases refuse, change or misread. */
const ODD_TEXTS = [
  ['', 'a', 'A', 'a ', ' a ', 'null', '__proto__', 'a.b', '$ne', '{"$gt":""}', '😀'],
  ['a\0b', '\\0', '\\', '\ud800', '\udc00x', 'A\u0301', '\u00c1', 'x'.repeat(600)],
  ["'; DROP TABLE x; --"],
].flat()

const LIVE = { owner: 'ann', live_of: 'ann' }

const many = <T>(count: number, make: (index: number) => T) =>
  Array.from({ length: count }, (_, index) => make(index))

const at = (ms: number) => new Date(Date.UTC(2026, 0, 1) + ms)

const byDue = { equal: { owner: 'ann' }, by: 'due_at' }
const down = { ...byDue, isDescending: true }

/** What is found of the six records of `find`: in the order of a field, then of ids; in a range; behind a record. */
const FOUND: [query: Partial<Query>, ids: string[]][] = [
  [{ equal: { owner: 'bob' } }, ['Bob']],
  [{ equal: { owner: ['bob', 'eve'] } }, ['Bob']],
  [{ equal: { owner: [] } }, []],
  [{ equal: { owner: 'ann', is_open: true } }, ['without']],
  [{ equal: { owner: 'ann', is_open: false } }, []],
  [byDue, ['a', 'c', 'd', 'b']],
  [down, ['b', 'd', 'c', 'a']],
  [{ ...byDue, limit: 2 }, ['a', 'c']],
  [{ equal: { owner: ['ann', 'bob'] }, by: 'due_at', limit: 3 }, ['Bob', 'a', 'c']],
  [{ ...byDue, from: at(2) }, ['d', 'b']],
  [{ ...byDue, below: at(2) }, ['a', 'c']],
  [{ ...byDue, from: at(1), below: at(1) }, []],
  [{ ...byDue, below: at(3), after: { value: at(1), id: 'a' } }, ['c', 'd']],
  [{ ...down, from: at(2) }, ['b', 'd']],
  [{ ...down, from: at(1), after: { value: at(2), id: 'd' } }, ['c', 'a']],
  [{}, ['Bob', 'a', 'b', 'c', 'd', 'without']],
  [{ after: { id: 'a' }, limit: 3 }, ['b', 'c', 'd']],
  [{ equal: { owner: 'ann' }, after: { id: 'b' }, limit: 2 }, ['c', 'd']],
]

/**
 * Tests what a `RecordStore` promises. `create` opens an empty one for each test.
 *
 * @param spoil - gives a field of this record an invalid value, outside the store. Left out: no record can be spoiled.
 */
export function itIsARecordStore(
  name: string,
  create: () => Promise<{ store: RecordStore; close(): Promise<void> }>,
  spoil?: (kind: Kind, id: string) => Promise<unknown>,
): void {
  describe(`${name} is a RecordStore`, function () {
    this.timeout(Math.max(this.timeout(), 20_000))
    let store: RecordStore
    let close = async () => {}

    beforeEach(async () => {
      ;({ store, close } = await create())
      await store.start([THINGS, OTHERS])
    })
    afterEach(() => close())

    const changed = (changes: Change[]) => store.swap(THINGS, changes)
    /** Makes each change by a call of its own. */
    const atOnce = async (changes: Change[]) =>
      (await Promise.all(changes.map((one) => changed([one])))).flat()
    /** Expects that the change is done. Returns its new revision. */
    async function swapped(...of: Parameters<typeof change>) {
      const one = change(...of)
      expect(await changed([one])).to.deep.equal([true])
      return one.becomes
    }
    const isRefused = async (...of: Parameters<typeof change>) =>
      expect(await changed([change(...of)])).to.deep.equal([false])
    async function inserted(fields: Fields, id: string = randomUUID(), kind = THINGS) {
      expect(await store.swap(kind, [change(id, undefined, fields)])).to.deep.equal([true])
      return found(id, kind)
    }
    async function found(id: string, kind = THINGS): Promise<Stored> {
      const [stored] = await store.get(kind, [id])
      if (!stored) throw new Error(`there is no record ${id}`)
      return stored
    }
    const idsOf = async (query: Partial<Query>, kind = THINGS) =>
      (await store.find(kind, { limit: 9, ...query })).map(({ id }) => id)
    /** The fields as read, except for the time that the database sets. */
    const fieldsOf = ({ fields: { made_at: _madeAt, ...others } = {} }: Stored) => others

    describe('a record', () => {
      it('is read as it was written: each type, and what is absent or was dropped', async () => {
        const json = { a: [1, 'x', null, { $b: true }], 'c.d': '', long: 'x'.repeat(70_000) }
        const records: Fields[] = [
          { ...LIVE, count: 2 ** 40 + 0.5, is_open: false, due_at: at(1), parameters: json },
          { owner: 'bob', count: 0, parameters: false },
          { owner: '', parameters: [], due_at: new Date(-1) },
        ]
        for (const fields of records) {
          const stored = await inserted(fields)
          expect(fieldsOf(stored)).to.deep.equal(fields)
          expect(stored).to.include({ was: undefined }).and.not.have.property('damaged')
          const other = await swapped(stored.id, stored.revision, { owner: 'eve' })
          expect(fieldsOf(await found(stored.id))).to.deep.equal({ owner: 'eve' })
          await swapped(stored.id, other, fields)
          expect(fieldsOf(await found(stored.id))).to.deep.equal(fields)
        }
      })

      it('takes any text for an id and for a field, each for itself', async () => {
        const fields = (id: string) => ({ owner: id, live_of: id, parameters: { [id]: id } })
        for (const text of ODD_TEXTS) await inserted(fields(text), text)
        for (const text of ODD_TEXTS) {
          expect(fieldsOf(await found(text)), JSON.stringify(text)).to.deep.equal(fields(text))
          for (const equal of [{ owner: text }, { live_of: [text] }])
            expect(await idsOf({ equal }), JSON.stringify(text)).to.deep.equal([text])
        }
      })

      it('is a copy, which changes nothing when it is changed', async () => {
        const parameters = { a: [1] }
        const { id } = await inserted({ owner: 'ann', due_at: at(1), parameters })
        parameters.a.push(2)
        const { fields } = await found(id)
        Object.assign(fields?.['parameters'] ?? {}, { a: [] })
        expect(fieldsOf(await found(id))['parameters']).to.deep.equal({ a: [1] })
      })

      it('has the time of the database in the field for that, once inserted, and keeps it', async () => {
        const { id, fields = {}, revision } = await inserted({ owner: 'ann', made_at: at(1) })
        const now = await store.now()
        expect(now.getTime() - Number(fields['made_at'])).to.be.within(-50, 60_000)
        const later = await swapped(id, revision, fields)
        expect((await found(id)).fields?.['made_at']).to.deep.equal(fields['made_at'])
        await swapped(id, later, { owner: 'ann', made_at: at(1) })
        expect((await found(id)).fields?.['made_at']).to.deep.equal(at(1))
      })

      if (spoil) {
        it('is damaged if it was changed past the store, and can be removed', async () => {
          const { id, revision } = await inserted({ owner: 'ann', count: 1, parameters: {} })
          await inserted({ owner: 'ann' })
          await spoil(THINGS, id)
          const all = await store.find(THINGS, { equal: { owner: 'ann' }, limit: 9 })
          for (const one of [await found(id), all.find((each) => each.id === id)]) {
            expect(one).to.include({ id, revision }).and.not.have.property('fields')
            expect(one?.damaged).to.be.a('string')
          }
          expect(all).to.have.length(2)
          await swapped(id, revision)
        })
      }

      it('is of its kind alone', async () => {
        const { id } = await inserted({ owner: 'ann' })
        expect(await store.get(OTHERS, [id])).to.deep.equal([undefined])
        await inserted({ owner: 'bob' }, id, OTHERS)
        expect(fieldsOf(await found(id))).to.deep.equal({ owner: 'ann' })
      })

      it('is read with others in the order that was asked for; none for an unknown id', async () => {
        for (const id of ['b', 'a', 'c']) await inserted({ owner: id }, id)
        const read = await store.get(THINGS, ['c', 'x', 'a', 'b', 'c'])
        expect(read.map((one) => one?.id)).to.deep.equal(['c', undefined, 'a', 'b', 'c'])
        expect(await store.get(THINGS, [])).to.deep.equal([])
      })
    })

    describe('swap', () => {
      it('inserts once, changes what was read alone, and names each state', async () => {
        const first = await swapped('a', undefined, { owner: 'ann' })
        await isRefused('a', undefined, { owner: 'eve' })
        const second = await swapped('a', first, { owner: 'ann', count: 2 })
        await isRefused('a', first, { owner: 'eve' })
        const stored = await found('a')
        expect(stored).to.include({ revision: second, was: first })
        expect(fieldsOf(stored)).to.deep.equal({ owner: 'ann', count: 2 })
      })

      it('removes what was read alone; a record that is gone can be inserted again', async () => {
        const { id, revision } = await inserted({ owner: 'ann' })
        await isRefused(id, 'another revision')
        await found(id)
        for (const _ of ['removed', 'gone by then']) await swapped(id, revision)
        expect(await store.get(THINGS, [id])).to.deep.equal([undefined])
        await isRefused(id, revision, { owner: 'eve' })
        await inserted({ owner: 'ann' }, id)
      })

      it('overwrites and removes any revision where that is asked for', async () => {
        for (const fields of [{ owner: 'ann', count: 1 }, { owner: 'bob' }]) {
          await swapped('a', ANY, fields)
          const stored = await found('a')
          expect([stored.was, fieldsOf(stored)]).to.deep.equal([undefined, fields])
          await swapped('a', stored.revision, { owner: 'eve' })
        }
        for (const _ of [1, 2]) await swapped('a', ANY)
        expect(await store.get(THINGS, ['a'])).to.deep.equal([undefined])
      })

      it('does each of many alone: of 100 the 10 stale ones are not done', async () => {
        const ids = many(100, (index) => `id ${index}`)
        const inserts = ids.map((id) => change(id, undefined, { owner: 'ann', count: 0 }))
        expect(await changed(inserts)).to.deep.equal(ids.map(() => true))
        const isStale = (index: number) => index % 10 === 3
        const swaps = inserts.map(({ id, becomes }, index) =>
          change(id, isStale(index) ? 'stale' : becomes, { owner: 'ann', count: 1 }),
        )
        const done = swaps.map((_, index) => !isStale(index))
        expect(await changed(swaps)).to.deep.equal(done)
        const read = await store.get(THINGS, ids)
        expect(read.map((one) => one?.fields?.['count'] === 1)).to.deep.equal(done)
      })

      it('does inserts, swaps, overwrites and removals side by side', async () => {
        const [kept, gone] = [await inserted({ owner: 'a' }), await inserted({ owner: 'b' })]
        const changes = [
          change(gone.id, gone.revision),
          change('new', undefined, { owner: 'c' }),
          change(kept.id, kept.revision, { owner: 'd' }),
          change('any', ANY, { owner: 'e' }),
          change('absent', 'stale', { owner: 'f' }),
        ]
        expect(await changed(changes)).to.deep.equal([true, true, true, true, false])
        const read = await store.get(THINGS, [gone.id, 'new', kept.id, 'any', 'absent'])
        const owners = read.map((one) => one?.fields?.['owner'])
        expect(owners).to.deep.equal([undefined, 'c', 'd', 'e', undefined])
        expect(await changed([])).to.deep.equal([])
      })

      it('lets one of 20 win that insert or swap the same record at once, again and again', async () => {
        let revision: string | undefined
        for (let round = 0; round < 10; round += 1) {
          const changes = many(20, (count) => change('a', revision, { owner: 'ann', count }))
          const answers = await atOnce(changes)
          const winners = changes.filter((_, index) => answers[index])
          expect(winners).to.have.length(1)
          const stored = await found('a')
          expect(fieldsOf(stored)).to.deep.equal(winners[0]?.next)
          revision = stored.revision
        }
      })

      it('lets many overwrite one record at once: all are done, and the record is one of them', async () => {
        const changes = many(20, (count) => change('a', ANY, { owner: 'ann', count }))
        expect(await atOnce(changes)).to.deep.equal(changes.map(() => true))
        expect(changes.map(({ becomes }) => becomes)).to.include((await found('a')).revision)
      })

      it('changes many records of two callers at once, in opposite orders', async () => {
        const ids = many(40, (index) => `id ${index}`)
        const inserts = ids.map((id) => change(id, undefined, { owner: 'ann' }))
        await changed(inserts)
        const swaps = (owner: string) =>
          inserts.map(({ id, becomes }) => change(id, becomes, { owner }))
        const both = [swaps('bob'), swaps('eve').toReversed()]
        const [one = [], other = []] = await Promise.all(both.map(changed))
        const losses = other.toReversed().map((won) => !won)
        expect(one).to.deep.equal(losses).and.have.length(40)
      })
    })

    describe('a unique field', () => {
      it('is held by one record, of 40 that insert it at once; none holds it where it is absent', async () => {
        const inserts = many(40, (index) => change(`id ${index}`, undefined, LIVE))
        expect((await atOnce(inserts)).filter(Boolean)).to.have.length(1)
        for (const _ of [1, 2]) await inserted({ owner: 'ann' })
        expect(await idsOf({ equal: { live_of: 'ann' } })).to.have.length(1)
      })

      it('is kept by a swap, free once it is left or its record is removed', async () => {
        const { id, revision } = await inserted(LIVE)
        const kept = await swapped(id, revision, LIVE)
        await isRefused(randomUUID(), undefined, LIVE)
        await swapped(id, kept, { owner: 'ann' })
        const next = await inserted(LIVE)
        await swapped(next.id, next.revision)
        await inserted(LIVE)
      })
    })

    describe('find', () => {
      beforeEach(async () => {
        for (const [index, id] of ['c', 'a', 'd', 'b'].entries())
          await inserted({ owner: 'ann', due_at: at(index < 2 ? 1 : index) }, id)
        await inserted({ owner: 'ann', is_open: true, count: 7 }, 'without')
        await inserted({ owner: 'bob', due_at: at(1) }, 'Bob')
      })

      it('finds what a query asks for, in its order, both ways, within its range', async () => {
        for (const [query, ids] of FOUND)
          expect(await idsOf(query), JSON.stringify(query)).to.deep.equal(ids)
      })

      it('finds all of several values, and all until a time of the database', async () => {
        const below = new Date((await store.now()).getTime() + 60_000)
        for (const query of [{ equal: { owner: ['bob', 'ann'] } }, { by: 'made_at', below }])
          expect(await idsOf(query)).to.have.length(6)
      })

      it('goes on behind a record, both ways, also among those with the same value', async () => {
        for (const isDescending of [false, true]) {
          const query = { equal: { owner: 'ann' }, by: 'due_at', isDescending }
          const all = await store.find(THINGS, { ...query, limit: 9 })
          for (const [index, { id, fields }] of all.entries()) {
            const after = { value: fields?.['due_at'] ?? 0, id }
            const next = all.slice(index + 1, index + 2).map((one) => one.id)
            expect(await idsOf({ ...query, after, limit: 1 })).to.deep.equal(next)
          }
          expect(all).to.have.length(4)
        }
      })

      it('refuses what no index answers, and an order or a place without its field', async () => {
        const unanswered = [{ equal: { count: 1 } }, { by: 'count' }, { equal: { is_open: true } }]
        const incomplete = [{ isDescending: true }, { by: 'due_at', after: { id: 'a' } }]
        for (const query of [...unanswered, ...incomplete]) {
          const error = await store.find(THINGS, { ...query, limit: 1 }).catch((e: unknown) => e)
          expect(error, JSON.stringify(query)).to.be.instanceOf(TypeError)
        }
        expect(await idsOf({ equal: { owner: 'bob' }, limit: 1 })).to.have.length(1)
      })
    })

    it('can be started again, by several at once, and loses nothing', async () => {
      const { id } = await inserted({ owner: 'ann' })
      await Promise.all([1, 2, 3].map(() => store.start([THINGS, OTHERS])))
      expect(fieldsOf(await found(id))).to.deep.equal({ owner: 'ann' })
    })

    it('keeps a record whose time to be purged is to come', async () => {
      const later = new Date((await store.now()).getTime() + 3_600_000)
      await inserted({ owner: 'ann', purge_at: later }, 'later', OTHERS)
      await inserted({ owner: 'ann' }, 'never', OTHERS)
      const ids = await idsOf({ equal: { owner: 'ann' } }, OTHERS)
      expect(ids).to.have.members(['later', 'never'])
      const below = new Date(later.getTime() + 1)
      expect(await idsOf({ by: 'purge_at', below }, OTHERS)).to.deep.equal(['later'])
    })
  })
}

function change(id: string, revision: Change['revision'], next?: Fields): Change {
  return { id, revision, next, becomes: randomUUID() }
}
