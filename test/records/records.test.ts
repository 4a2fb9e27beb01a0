import { expect } from 'chai'
import { AccountFlowsError } from '../../src/errors.ts'
import type { Change, Fields, Kind, RecordStore } from '../../src/ports/record-store.ts'
import { createRecords } from '../../src/records/records.ts'
import { memoryRecords } from '../../src/stores/memory/records.ts'
import { movableClock } from '../support/time.ts'

const COUNTERS: Kind = {
  name: 'counters',
  fields: { owner: 'text', count: 'number' },
  required: ['count'],
  indexes: [['owner']],
  unique: [],
}

const counted = (before: Fields | undefined) => {
  const count = Number(before?.['count'] ?? 0) + 1
  return { next: { ...before, count }, answer: count }
}
const numbers = (length: number) => Array.from({ length }, (_, index) => index + 1)

/** A service on a store whose commands are told, and can be changed. */
function service(changed: (store: RecordStore) => Partial<RecordStore> = () => ({})) {
  const store = memoryRecords(movableClock)
  const commands: string[] = []
  const asked = { ...store, ...changed(store) }
  const told: RecordStore = {
    ...asked,
    get: (kind, ids) => (commands.push(`get ${ids.length}`), asked.get(kind, ids)),
    find: (kind, query) => (commands.push('find'), asked.find(kind, query)),
    swap: (kind, changes) => (commands.push(`swap ${changes.length}`), asked.swap(kind, changes)),
  }
  return { store, commands, records: createRecords(told, movableClock) }
}

const countOf = async (store: RecordStore, id: string) =>
  (await store.get(COUNTERS, [id]))[0]?.fields?.['count']

describe('Changes of records', () => {
  it('of one record that wait are written by one swap, and each has its own answer', async () => {
    const { store, commands, records } = service()
    const counts = await Promise.all(numbers(100).map(() => records.change(COUNTERS, 'a', counted)))
    expect(counts).to.deep.equal(numbers(100))
    expect(await countOf(store, 'a')).to.equal(100)
    expect(commands.length).to.be.at.most(4)
  })

  it('of different records share their commands', async () => {
    const { commands, records } = service()
    await Promise.all(numbers(50).map((id) => records.change(COUNTERS, `${id}`, counted)))
    expect(commands).to.deep.equal(['get 50', 'swap 50'])
  })

  it('of 16 processes count each hit once', async () => {
    const { store } = service()
    const processes = numbers(16).map(() => createRecords(store, movableClock))
    const counts = await Promise.all(
      processes.flatMap((records) => numbers(20).map(() => records.change(COUNTERS, 'a', counted))),
    )
    expect(counts.toSorted((a, b) => a - b)).to.deep.equal(numbers(320))
  })

  it('that throw fail their callers alone; what changes nothing writes nothing', async () => {
    const { store, commands, records } = service()
    const fails = () => {
      throw new RangeError('not today')
    }
    const answers = await Promise.allSettled([
      records.change(COUNTERS, 'a', counted),
      records.change(COUNTERS, 'a', fails),
      records.change(COUNTERS, 'a', counted),
    ])
    expect(answers.map(({ status }) => status)).to.deep.equal([
      'fulfilled',
      'rejected',
      'fulfilled',
    ])
    expect(await countOf(store, 'a')).to.equal(2)
    const before = commands.length
    const read = (next: Fields | undefined) => ({ next, answer: next?.['count'] })
    expect(await records.change(COUNTERS, 'a', read)).to.equal(2)
    expect(commands.slice(before)).to.deep.equal(['get 1'])
  })

  it('are refused once 1,000 wait for one record, and go on afterwards', async () => {
    const { store, records } = service()
    const changes = numbers(1_200).map(() => records.change(COUNTERS, 'a', counted))
    const answers = await Promise.allSettled(changes)
    const refused = answers.filter(({ status }) => status === 'rejected')
    expect(refused.length).to.be.within(190, 201)
    for (const each of refused)
      expect(each).to.have.nested.property('reason.code', 'ERR_STORE_CONTENTION')
    expect(await countOf(store, 'a')).to.equal(1_200 - refused.length)
    await records.change(COUNTERS, 'a', counted)
  })

  it('give up where others come first for longer than 5 seconds', async () => {
    const { records, store } = service(() => ({
      swap: async (_kind, changes) => changes.map(() => false),
    }))
    const refused = await records.change(COUNTERS, 'a', counted).catch((error: unknown) => error)
    expect(refused).to.include({ code: 'ERR_STORE_CONTENTION' })
    expect(await store.get(COUNTERS, ['a'])).to.deep.equal([undefined])
  })

  it('of a damaged record say which it is, and leave it', async () => {
    const { records, store } = service()
    await store.swap(COUNTERS, [
      { id: 'a', revision: undefined, next: { owner: 'ann' }, becomes: 'r' },
    ])
    const refused = await records.change(COUNTERS, 'a', counted).catch(String)
    expect(refused).to.match(/counters is damaged: count .* id is a$/)
    expect((await store.get(COUNTERS, ['a']))[0]?.damaged).to.be.a('string')
    await records.overwrite(COUNTERS, 'a', { count: 1 })
    expect(await records.change(COUNTERS, 'a', counted)).to.equal(2)
  })
})

describe('A swap whose answer is lost', () => {
  const unavailable = () => new AccountFlowsError('ERR_STORE_UNAVAILABLE', 'lost')

  for (const [what, losing] of [
    ['before it arrives', async () => {}],
    [
      'after it was done',
      (store: RecordStore, changes: readonly Change[]) => store.swap(COUNTERS, changes),
    ],
  ] as const) {
    it(`is known all the same where it is lost ${what}: each hit counts once`, async () => {
      let swaps = 0
      const { store, records } = service((real) => ({
        async swap(kind, changes) {
          swaps += 1
          if (swaps % 2 === 0) return real.swap(kind, changes)
          await losing(real, changes)
          throw unavailable()
        },
      }))
      for (const count of numbers(6))
        expect(await records.change(COUNTERS, 'a', counted)).to.equal(count)
      expect(await countOf(store, 'a')).to.equal(6)
    })
  }

  it('is told as unavailable where the record moved on twice since', async () => {
    let isLost = true
    const { records } = service((real) => ({
      async swap(kind, changes) {
        if (!isLost) return real.swap(kind, changes)
        isLost = false
        const other = createRecords(real, movableClock)
        for (const _ of [1, 2, 3]) await other.change(kind, 'a', counted)
        throw unavailable()
      },
    }))
    const refused = await records.change(COUNTERS, 'a', counted).catch((error: unknown) => error)
    expect(refused).to.include({ code: 'ERR_STORE_UNAVAILABLE' })
    expect(await records.change(COUNTERS, 'a', counted)).to.equal(4)
  })
})

describe('What callers of one turn ask', () => {
  it('is one command where it differs in one value alone, and each gets its own', async () => {
    const { commands, records } = service()
    const owners = ['ann', 'bob', 'eve']
    for (const owner of owners) await records.insert(COUNTERS, `of ${owner}`, { owner, count: 0 })
    commands.length = 0
    const found = await Promise.all(
      [...owners, 'nobody', 'ann'].map((owner) =>
        records.find(COUNTERS, { equal: { owner }, limit: 2 }),
      ),
    )
    const ids = found.map((all) => all.map(({ id }) => id))
    expect(ids).to.deep.equal([['of ann'], ['of bob'], ['of eve'], [], ['of ann']])
    expect(commands).to.deep.equal(['find'])
  })

  it('has up to the limit for each, whatever others have', async () => {
    const { records } = service()
    const add = (owner: string) => (n: number) =>
      records.insert(COUNTERS, `${owner} ${n}`, { owner, count: n })
    await Promise.all([...numbers(9).map(add('ann')), add('bob')(1)])
    const found = await Promise.all(
      ['ann', 'bob'].map((owner) => records.find(COUNTERS, { equal: { owner }, limit: 2 })),
    )
    expect(found.map(({ length }) => length)).to.deep.equal([2, 1])
  })

  it('fails alone where one of them cannot be written', async () => {
    const { records, store } = service((real) => ({
      async swap(kind, changes) {
        if (changes.some(({ next }) => Number.isNaN(next?.['count']))) throw new TypeError('NaN')
        return real.swap(kind, changes)
      },
    }))
    const answers = await Promise.allSettled(
      [1, NaN, 3].map((count) => records.insert(COUNTERS, `${count}`, { count })),
    )
    expect(answers.map(({ status }) => status)).to.deep.equal([
      'fulfilled',
      'rejected',
      'fulfilled',
    ])
    expect(await countOf(store, '3')).to.equal(3)
  })

  it('is inserted once, of 40 that insert the same id at once', async () => {
    const { records } = service()
    const inserts = numbers(40).map((count) => records.insert(COUNTERS, 'a', { count }))
    expect((await Promise.all(inserts)).filter(Boolean)).to.have.length(1)
  })
})
