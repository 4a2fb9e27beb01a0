import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { systemClock } from '../../src/clock.ts'
import { AccountFlowsError } from '../../src/errors.ts'
import {
  ANY,
  type Change,
  type Kind,
  type RecordStore,
  type Stored,
} from '../../src/store/record-store.ts'
import { kindOf } from '../../src/store/kind.ts'
import { createRecords } from '../../src/store/records.ts'
import { type Table, tableOf } from '../../src/store/table.ts'
import { memoryStore } from '../../src/store/memory/store.ts'
import { movableClock } from '../support/time.ts'

const COUNTERS: Kind = {
  name: 'counters',
  fields: { owner: 'text', count: 'number' },
  required: ['count'],
  indexes: [['owner']],
  unique: [],
}

interface Counter {
  id: string
  count: number
}

const COUNTED = kindOf({
  name: 'counters',
  fields: { count: 'number' },
  indexes: [['count']],
})

const counted = (before: Stored | undefined) => {
  const count = Number(before?.fields?.['count'] ?? 0) + 1
  return { next: { ...before?.fields, count }, answer: count }
}
const SECOND_FAILS = ['fulfilled', 'rejected', 'fulfilled']
const numbers = (length: number) => Array.from({ length }, (_, index) => index + 1)

/** A service on a store whose commands are told, and can be changed. */
function service(changed: (store: RecordStore) => Partial<RecordStore> = () => ({})) {
  const store = memoryStore(movableClock)
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

const count = (counters: Table<Counter>, which: string | Counter = 'a') =>
  counters.change(which, (before) => {
    const next = { id: 'a', count: (before?.count ?? 0) + 1 }
    return { next, answer: next.count }
  })

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

  it('of one process come through while another one goes on changing the same record', async () => {
    const store = memoryStore()
    const far: RecordStore = {
      ...store,
      get: async (...asked) => (await sleep(3), await store.get(...asked)),
      swap: async (...asked) => (await sleep(3), await store.swap(...asked)),
    }
    const [busy, other] = [createRecords(far, systemClock), createRecords(far, systemClock)]
    const remembered = { ...COUNTERS, isRemembered: true, isMostlyNew: true }
    let isOver = false
    async function goOn() {
      while (!isOver) await busy.change(remembered, 'a', counted)
    }
    const callers = numbers(20).map(goOn)
    const counts = await Promise.all(
      numbers(5).map(() => other.change(remembered, 'a', counted)),
    ).finally(() => (isOver = true))
    await Promise.all(callers)
    expect(new Set(counts).size).to.equal(5)
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
    expect(answers.map(({ status }) => status)).to.deep.equal(SECOND_FAILS)
    expect(await countOf(store, 'a')).to.equal(2)
    const before = commands.length
    const read = (before: Stored | undefined) => ({
      next: before?.fields,
      answer: before?.fields?.['count'],
    })
    expect(await records.change(COUNTERS, 'a', read)).to.equal(2)
    expect(commands.slice(before)).to.deep.equal(['get 1'])
  })

  it('of a guess that write nothing are read at once, and share that command', async () => {
    const { commands, records } = service()
    const guessed = { ...COUNTERS, isRemembered: true, isMostlyNew: true }
    await records.write(COUNTERS, '1', undefined, { count: 7 })
    const read = (id: number) =>
      records.change(guessed, `${id}`, (before) => ({
        next: before?.fields,
        answer: before?.fields?.['count'],
      }))
    expect(await Promise.all(numbers(4).map(read))).to.deep.equal([
      7,
      undefined,
      undefined,
      undefined,
    ])
    expect(commands).to.deep.equal(['swap 1', 'get 4'])
  })

  it('are refused once 1,000 wait for one record, and go on afterwards', async () => {
    const { store, records } = service()
    const changes = numbers(1_200).map(() => records.change(COUNTERS, 'a', counted))
    const answers = await Promise.allSettled(changes)
    const refused = answers.filter(({ status }) => status === 'rejected')
    expect(refused.length).to.be.within(190, 201)
    for (const each of refused)
      expect(each).to.have.nested.property('reason.code', 'ERR_STORE_UNAVAILABLE')
    expect(await countOf(store, 'a')).to.equal(1_200 - refused.length)
    await records.change(COUNTERS, 'a', counted)
  })

  it('give up where others come first for longer than 5 seconds', async () => {
    const { records, store } = service(() => ({
      swap: async (_kind, changes) => changes.map(() => false),
    }))
    const refused = await records.change(COUNTERS, 'a', counted).catch((error: unknown) => error)
    expect(refused).to.include({ code: 'ERR_STORE_UNAVAILABLE' })
    expect(await store.get(COUNTERS, ['a'])).to.deep.equal([undefined])
  })

  it('of a damaged record say which it is, and leave it; or begin anew, where the kind says so', async () => {
    const { records, store } = service()
    const damage = (becomes: string) =>
      store.swap(COUNTERS, [{ id: 'a', revision: ANY, next: { owner: 'ann' }, becomes }])
    const strict = tableOf(records, COUNTED)
    const lenient = tableOf(
      records,
      kindOf({ name: 'counters', fields: { count: 'number' }, damagedIsNone: true }),
    )
    for (const revision of ['r', '']) {
      await damage(revision)
      expect(await count(strict).catch(String)).to.match(/counters is damaged: count .* id is a$/)
      expect((await store.get(COUNTERS, ['a']))[0]?.damaged).to.be.a('string')
      expect(await count(lenient)).to.equal(1)
      expect(await count(strict)).to.equal(2)
    }
  })

  it('of what one caller has found take it for no other one that is there', async () => {
    const { records } = service()
    await records.write(COUNTERS, 'a', undefined, { count: 1 })
    const found = await records.get(COUNTERS, 'a')
    const removal = (before: Stored | undefined) => ({
      next: undefined,
      answer: before !== undefined,
    })
    const removed = await Promise.all([
      records.change(COUNTERS, 'a', removal),
      records.change(COUNTERS, 'a', removal),
      records.change(COUNTERS, 'a', (before) => ({ next: before?.fields, answer: false }), found),
    ])
    expect(removed).to.deep.equal([true, false, false])
  })

  it('of what was just found are one command; of what somebody else has changed since, it is read again', async () => {
    const { records, commands } = service()
    const counters = tableOf(records, COUNTED)
    await counters.insert({ id: 'a', count: 1 })
    const [found] = await counters.find({ by: 'count', limit: 1 })
    if (!found) throw new Error('nothing was found')
    expect(await count(counters, found)).to.equal(2)
    expect(commands).to.deep.equal(['swap 1', 'find', 'swap 1'])
    expect(await count(counters, found)).to.equal(3)
  })

  for (const isMostlyNew of [false, true]) {
    const first = isMostlyNew ? 'with an insert' : 'with a look'
    it(`of a kind that is remembered are one command, begin ${first}, and are right all the same where another process counts as well`, async () => {
      const { records, store, commands } = service()
      const remembered = kindOf({
        name: 'counters',
        fields: { count: 'number' },
        isRemembered: true,
        isMostlyNew,
      })
      const [own, other] = [records, createRecords(store, movableClock)].map((each) =>
        tableOf(each, remembered),
      )
      if (!own || !other) throw new Error('there are two')
      const read = (which: Table<Counter>) =>
        which.change('a', (before) => ({ next: before, answer: before?.count }))
      expect([await count(own), await count(own)]).to.deep.equal([1, 2])
      expect(commands).to.deep.equal([...(isMostlyNew ? [] : ['get 1']), 'swap 1', 'swap 1'])
      expect([await read(other), await count(other)]).to.deep.equal([2, 3])
      expect([await read(own), await count(own)]).to.deep.equal([3, 4])
      expect(await count(other)).to.equal(5)
    })
  }
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
      // Of a removal too, be it of any revision or of the one that was found.
      await records.write(COUNTERS, 'b', undefined, { count: 1 })
      await records.write(COUNTERS, 'a', ANY)
      const removal = () => ({ next: undefined, answer: undefined })
      await records.change(COUNTERS, 'b', removal, await records.get(COUNTERS, 'b'))
      expect(await store.get(COUNTERS, ['a', 'b'])).to.deep.equal([undefined, undefined])
    })
  }

  it('is never taken for done where what the store throws is no error of ours', async () => {
    const { store, records } = service(() => ({
      swap: () => Promise.reject('the driver throws a text'),
    }))
    const failed = (error: unknown) => error
    const insert = records.write(COUNTERS, 'a', undefined, { count: 1 }).catch(failed)
    expect(await insert).to.equal('the driver throws a text')
    const change = records.change(COUNTERS, 'a', counted).catch(failed)
    expect(await change).to.equal('the driver throws a text')
    expect(await store.get(COUNTERS, ['a'])).to.deep.equal([undefined])
  })

  it('is done where it came in after the look, and what was sent again found it there', async () => {
    let late = () => Promise.resolve([true])
    let isLate = true
    const { store, records } = service((real) => ({
      async swap(kind, changes) {
        if (!isLate) return real.swap(kind, changes)
        isLate = false
        late = () => real.swap(kind, changes)
        throw unavailable()
      },
      async get(kind, ids) {
        const found = await real.get(kind, ids)
        if (!isLate) await late()
        return found
      },
    }))
    await store.swap(COUNTERS, [{ id: 'a', revision: undefined, next: { count: 1 }, becomes: 'r' }])
    expect(await records.change(COUNTERS, 'a', counted)).to.equal(2)
    expect(await countOf(store, 'a')).to.equal(2)
  })

  for (const ids of [
    ['a', 'b'],
    ['a', 'a'],
  ]) {
    it(`is done where another one in its command fails, of ${ids.join(' and ')}`, async () => {
      const isBad = ({ next }: Change) => next?.['count'] === -1
      const { store, records } = service((real) => ({
        async swap(kind, changes) {
          await real.swap(
            kind,
            changes.filter((one) => !isBad(one)),
          )
          if (changes.some(isBad)) throw new RangeError('not in this database')
          return changes.map(() => true)
        },
      }))
      const [honest = '', bad = ''] = ids
      const answers = await Promise.allSettled([
        records.write(COUNTERS, honest, undefined, { count: 1 }),
        records.write(COUNTERS, bad, undefined, { count: -1 }),
      ])
      expect(answers).to.deep.include({ status: 'fulfilled', value: true })
      // Its id is taken, or it fails alone.
      if (bad === honest) expect(answers[1]).to.deep.equal({ status: 'fulfilled', value: false })
      else expect(answers[1]).to.have.nested.property('reason.message', 'not in this database')
      expect(await countOf(store, honest)).to.equal(1)
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
    for (const owner of owners)
      await records.write(COUNTERS, `of ${owner}`, undefined, { owner, count: 0 })
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

  it('is one command where each finds as many as it asked for, and where all ask the same', async () => {
    const { commands, records } = service()
    const owners = numbers(50).map(String)
    for (const owner of owners) await records.write(COUNTERS, owner, undefined, { owner, count: 0 })
    for (const asked of [owners, owners.map(() => '7')]) {
      commands.length = 0
      const found = await Promise.all(
        asked.map((owner) => records.find(COUNTERS, { equal: { owner }, limit: 1 })),
      )
      expect(found.map((all) => all.map(({ id }) => id))).to.deep.equal(asked.map((id) => [id]))
      expect(commands).to.deep.equal(['find'])
    }
  })

  it('is one command, however many overwrite the same record', async () => {
    const { commands, records, store } = service()
    const saved = numbers(99).map((n) => records.write(COUNTERS, 'a', ANY, { count: n }))
    await Promise.all([...saved, records.write(COUNTERS, 'b', ANY, { count: 1 })])
    expect(commands).to.deep.equal(['swap 2'])
    expect(await countOf(store, 'a')).to.equal(99)
  })

  it('is sent again side by side, where its command failed', async () => {
    let [underWay, most] = [0, 0]
    const { records } = service((real) => ({
      async swap(kind, changes) {
        if (changes.length > 1) throw new RangeError('not so many')
        underWay += 1
        most = Math.max(most, underWay)
        await sleep(1)
        underWay -= 1
        return real.swap(kind, changes)
      },
    }))
    const inserted = numbers(30).map((n) =>
      records.write(COUNTERS, `${n}`, undefined, { count: n }),
    )
    expect(await Promise.all(inserted)).to.deep.equal(numbers(30).map(() => true))
    expect(most).to.equal(30)
  })

  it('has up to the limit for each, whatever others have', async () => {
    const { records } = service()
    const add = (owner: string) => (n: number) =>
      records.write(COUNTERS, `${owner} ${n}`, undefined, { owner, count: n })
    await Promise.all([...numbers(9).map(add('ann')), add('bob')(1)])
    const found = await Promise.all(
      ['ann', 'bob'].map((owner) => records.find(COUNTERS, { equal: { owner }, limit: 2 })),
    )
    expect(found.map(({ length }) => length)).to.deep.equal([2, 1])
  })
})
