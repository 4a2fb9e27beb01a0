import bcrypt from 'bcrypt'
import { expect } from 'chai'
import { createHashQueue, hashQueueLimits } from '../../src/crypto/hash-queue.ts'
import {
  createHashing,
  createVerifyPassword,
  readable,
  sameWork,
} from '../../src/crypto/hashing.ts'
import { passwordDigest } from '../../src/crypto/password.ts'
import { refusePassword } from '../../src/passwords/passwords.ts'
import { bcryptWork, turns } from '../support/bcrypt-work.ts'

describe('refusePassword() (8, PWD-09)', () => {
  const LIMITS = { minPasswordLength: 8, maxPasswordLength: 64 }

  const table: [password: string, refusal?: string, excess?: number][] = [
    ['', 'password_too_short'],
    ['12345678'],
    ['        '],
    ['x'.repeat(64)],
    ['x'.repeat(65), 'password_too_long', 1],
    ['x'.repeat(66), 'password_too_long', 2],
    ['x'.repeat(1_000_000), 'password_too_long', 999_936],
    ['🔑'.repeat(7), 'password_too_short'],
    ['🔑'.repeat(8)],
    ['🔑'.repeat(18)],
    ['🔑'.repeat(19), 'password_too_long', 1],
    ['é'.repeat(36)],
    [`${'é'.repeat(36)}a`, 'password_too_long', 1],
    [`${'я'.repeat(35)}🔑`, 'password_too_long', 1],
    ['я'.repeat(100), 'password_too_long', 64],
    ['字'.repeat(25), 'password_too_long', 1],
    ['long enough\uD800', 'password_invalid'],
    ['\uDC00\uD800 long enough', 'password_invalid'],
    ['long\nenough'],
  ]
  for (const [password, refusal, excess = 0] of table) {
    const shown = JSON.stringify(password).slice(0, 30)
    it(`${shown} (${password.length} UTF-16 units): ${refusal ?? 'accepted'}, ${excess} too many`, () => {
      const refused = refusePassword(password, password, LIMITS)
      expect([refused?.refusal, refused?.excess ?? 0]).to.deep.equal([refusal, excess])
      const fitting = Array.from(password).slice(0, -excess).join('')
      if (excess > 0) expect(refusePassword(fitting, fitting, LIMITS)).to.equal(undefined)
    })
  }
})

describe('hashPassword() (2.3)', () => {
  const hashPassword = (password: string, cost: number) =>
    createHashing(undefined, cost, () => {}).hashPassword(password)

  it('is bcrypt at the given cost, with a salt of its own, of all 72 bytes (PWD-14)', async () => {
    const one = await hashPassword('long enough', 4)
    const other = await hashPassword('long enough', 5)
    expect(one).to.match(/^\$2b\$04\$.{53}$/)
    expect(other).to.match(/^\$2b\$05\$.{53}$/)
    expect(one.slice(7, 29)).not.to.equal(other.slice(7, 29))
    expect(await bcrypt.compare('long enough', one)).to.equal(true)
    expect(await bcrypt.compare('long enougH', one)).to.equal(false)
    const stored = await hashPassword(`${'x'.repeat(71)}y`, 4)
    expect(await bcrypt.compare('x'.repeat(72), stored)).to.equal(false)
  })
})

describe('passwordDigest()', () => {
  it('tells two hashes apart, and a hash from none, without being one of them', () => {
    const digests = [undefined, 'none!', '$2b$04$a', '$2b$04$b'].map(passwordDigest)
    expect(new Set(digests)).to.have.property('size', digests.length)
    for (const digest of digests) expect(digest).to.match(/^[0-9a-f]{64}$/)
    expect(passwordDigest('$2b$04$a')).to.equal(digests[2])
    for (const none of ['', null]) expect(passwordDigest(none as never)).to.equal(digests[0])
  })
})

describe('verifyPassword', () => {
  const COST = 6
  const PASSWORD = 'correct horse battery'
  const LONGEST = 'x'.repeat(72)
  const queue = () => createHashQueue({ atOnce: 1, waiting: Infinity, waitingOfOne: Infinity })
  const verifier = () => createVerifyPassword(COST, queue())
  const hashed = async (password: string, cost: number) => ({
    passwordHash: await bcrypt.hash(password, cost),
    disabled: false,
  })

  describe('costs the same work for everybody (TIM-06)', () => {
    const hashOf = (cost: number) => `$2b$${String(cost).padStart(2, '0')}$${'x'.repeat(53)}`

    /** Rounds of bcrypt, as its documentation counts them. */
    const roundsOf = (hashes: string[]) =>
      hashes.reduce((sum, hash) => sum + 2 ** Number(hash.slice(4, 6)), 0)

    const UNREADABLE: Record<string, string | undefined> = {
      'no user or no password': undefined,
      'an empty hash': '',
      'a hash of something else': 'f'.repeat(64),
      'a hash that is cut off': hashOf(12).slice(0, 40),
      'a hash with one character more': `${hashOf(12)}x`,
      'a hash with a line break at its end': `${hashOf(12)}\n`,
      'a letter that no hash has': hashOf(12).replace(/x$/, '!'),
      'an unknown version': hashOf(12).replace('$2b', '$2x'),
      'a version without a letter': hashOf(12).replace('$2b', '$2'),
      'a cost below 4': hashOf(3),
      'a cost above 31': hashOf(32),
    }

    it('so that a stored hash of a lower cost is made up for: as many hashes, as many rounds, and little more than one of the usual cost', () => {
      for (let cost = 4; cost <= 31; cost += 1) {
        const nobodys = sameWork(undefined, cost)
        for (let stored = 4; stored <= cost; stored += 1) {
          const work = sameWork(readable(hashOf(stored)), cost)
          expect(work[0]).to.equal(hashOf(stored))
          expect(work).to.have.lengthOf(nobodys.length)
          expect(roundsOf(work)).to.equal(roundsOf(nobodys))
          for (const each of work) expect(each).to.match(/^\$2b\$(0[4-9]|[12]\d|3[01])\$.{53}$/)
        }
      }
      expect(roundsOf(sameWork(undefined, 12)) / 2 ** 12).to.be.lessThan(1.06)
    })

    for (const [what, stored] of Object.entries(UNREADABLE)) {
      it(`and so that ${what} is the work of nobody's`, () => {
        expect(readable(stored)).to.equal(undefined)
        expect(sameWork(readable(stored), COST)).to.deep.equal(sameWork(undefined, COST))
      })
    }

    it('in bcrypt itself, whoever and whatever is asked for, and from its first sight on that of a dearer hash', async () => {
      const verifyPassword = verifier()
      const ann = await hashed(PASSWORD, COST)
      const everybody = [
        undefined,
        ann,
        { ...ann, disabled: true },
        ...Object.values(UNREADABLE).map((passwordHash) => ({ ...ann, passwordHash })),
        await hashed(PASSWORD, 4),
      ]
      const workOf = (user: (typeof everybody)[number], password = PASSWORD) =>
        bcryptWork(() => verifyPassword(user, password))
      const work = Array<string>(COST + 2).fill('bcrypt:CompareAsyncWorker')
      for (const user of everybody) expect(await workOf(user)).to.deep.equal(work)
      for (const password of ['wrong', '', 'x'.repeat(73), `${PASSWORD}\0`, '\uD800']) {
        expect(await workOf(ann, password)).to.deep.equal(work)
      }
      const dearer = await hashed(PASSWORD, COST + 1)
      for (const user of [dearer, ...everybody]) {
        expect(await workOf(user)).to.have.length(work.length + 1)
      }
    })

    it('except for a hash that is dearer by more than two: it is compared alone, is reported, and slows no other', async () => {
      const told: number[] = []
      const verifyPassword = createVerifyPassword(COST, queue(), (cost) => told.push(cost))
      const dear = await hashed(PASSWORD, COST + 3)
      expect(await bcryptWork(() => verifyPassword(dear, 'wrong'))).to.have.length(1)
      expect(await verifyPassword(dear, PASSWORD)).to.equal(true)
      expect(told).to.deep.equal([COST + 3, COST + 3])
      expect(await bcryptWork(() => verifyPassword(undefined, PASSWORD))).to.have.length(COST + 2)
      expect(await verifyPassword(await hashed(PASSWORD, COST + 2), PASSWORD)).to.equal(true)
      expect(await bcryptWork(() => verifyPassword(undefined, PASSWORD))).to.have.length(COST + 4)
      expect(told).to.have.length(2)
    })
  })

  describe('answers true', () => {
    for (const [what, cost, version] of [
      ['a hash of a lower cost', 4, '$2b'],
      ['a hash of its own cost', COST, '$2b'],
      ['a hash of a higher cost', COST + 1, '$2b'],
      ['a hash as PHP writes it', COST, '$2y'],
      ['an older version', COST, '$2a'],
    ] as const) {
      it(`for the right password alone, with ${what}`, async () => {
        const verifyPassword = verifier()
        const passwordHash = (await bcrypt.hash(PASSWORD, cost)).replace('$2b', version)
        const ann = { passwordHash, disabled: false }
        for (const wrong of ['', 'wrong', `${PASSWORD} `, PASSWORD.toUpperCase(), LONGEST]) {
          expect(await verifyPassword(ann, wrong), wrong).to.equal(false)
        }
        expect(await verifyPassword(ann, PASSWORD)).to.equal(true)
        const others = [undefined, { ...ann, disabled: true }, { ...ann, passwordHash: undefined }]
        for (const other of others) expect(await verifyPassword(other, PASSWORD)).to.equal(false)
        expect(await verifyPassword(others[2], '')).to.equal(false)
      })
    }

    for (const [what, right, wrong] of [
      ['the 73rd byte', LONGEST, `${LONGEST}x`],
      ['the 73rd byte, after letters of two', 'é'.repeat(36), `${'é'.repeat(36)}x`],
      ['what follows NUL', PASSWORD, `${PASSWORD}\0${PASSWORD}`],
      ['a NUL at the end', PASSWORD, `${PASSWORD}\0`],
      ['half a letter', 'two \uFFFD halves', 'two \uD83D halves'],
    ] as const) {
      it(`for no password that bcrypt would take for the right one: ${what} (PWD-01)`, async () => {
        const verifyPassword = verifier()
        const ann = await hashed(right, 4)
        expect(await verifyPassword(ann, wrong)).to.equal(false)
        expect(await verifyPassword(ann, right)).to.equal(true)
      })
    }
  })

  it('waits in the queue, and is refused like anything else there', async () => {
    const short = createHashQueue({ atOnce: 1, waiting: 9, waitingOfOne: 1 })
    const verifyPassword = createVerifyPassword(COST, short)
    const asked = [1, 2, 3].map(() => verifyPassword(undefined, PASSWORD, 'a network'))
    const [first, second, third] = await Promise.allSettled(asked)
    for (const served of [first, second]) expect(served).to.have.property('value', false)
    expect(third).to.have.nested.property('reason.code', 'ERR_OVERLOADED')
  })
})

describe('The queue of what is hashed (RATE-15)', () => {
  /** A queue of work that ends when the test says so: `ask` answers the number that it was given, or why it was refused. */
  function queueOf(limits: Parameters<typeof createHashQueue>[0]) {
    const queue = createHashQueue(limits)
    const begun: number[] = []
    const ends: (() => void)[] = []
    const hash = (index: number) =>
      new Promise<number>((resolve) => {
        begun.push(index)
        ends[index] = () => resolve(index)
      })
    return {
      begun,
      ask: (index: number, network?: string): Promise<unknown> =>
        queue(() => hash(index), network).catch(({ name, code }) => `${name} ${code}`),
      async end(...indices: number[]) {
        for (const index of indices) {
          ends[index]?.()
          await turns(1)
        }
      },
    }
  }

  const OVERLOADED = 'AccountFlowsError ERR_OVERLOADED'

  it('lets so many run at once, and the others in the order in which they came', async () => {
    const { begun, ask, end } = queueOf({ atOnce: 2, waiting: 3, waitingOfOne: 3 })
    const answers = [0, 1, 2, 3, 4].map((index) => ask(index, 'a'))
    await turns(1)
    expect(begun).to.deep.equal([0, 1])
    for (const [index, ended] of [1, 2, 0].entries()) {
      await end(ended)
      expect(begun).to.deep.equal([0, 1, 2, 3, 4].slice(0, index + 3))
    }
    await end(3, 4)
    expect(await Promise.all(answers)).to.deep.equal([0, 1, 2, 3, 4])
  })

  it('refuses whoever would wait behind too many, with nothing done, and takes the next once there is room', async () => {
    const { begun, ask, end } = queueOf({ atOnce: 1, waiting: 2, waitingOfOne: 2 })
    const served = [0, 1, 2].map((index) => ask(index, 'a'))
    expect(await ask(3, 'a')).to.equal(OVERLOADED)
    expect(begun).to.deep.equal([0])
    await end(0)
    served.push(ask(4))
    await end(1, 2, 4)
    expect(await Promise.all(served)).to.deep.equal([0, 1, 2, 4])
    expect(begun).to.deep.equal([0, 1, 2, 4])
  })

  it('refuses the last of the longest line where all places are taken, so that others still come in', async () => {
    const { begun, ask, end } = queueOf({ atOnce: 1, waiting: 4, waitingOfOne: 2 })
    const networks = ['a', 'a', 'a', 'b', 'b', 'ann']
    const all = networks.map((network, index) => ask(index, network))
    const first = await Promise.race([...all, turns(2).then(() => 'all wait')])
    expect(first).to.equal(OVERLOADED)
    for (let done = 0; done < 5; done += 1) await end(begun[done] ?? -1)
    expect((await Promise.all(all)).filter((answer) => answer === OVERLOADED)).to.have.length(1)
    expect(begun).to.include(5).and.have.length(5)
  })

  it('gives networks turns: a password that comes alone waits for one of each other network', async () => {
    const { begun, ask, end } = queueOf({ atOnce: 1, waiting: 9, waitingOfOne: 3 })
    const others = ['another', 'another', undefined, undefined, 'ann']
    const networks = [...Array<string>(4).fill('guesser'), ...others]
    const answers = networks.map((network, index) => ask(index, network))
    const order = [0, 1, 4, 6, 8, 2, 5, 7, 3]
    await end(...order)
    expect(begun).to.deep.equal(order)
    expect(await Promise.all(answers)).to.deep.equal([...networks.keys()])
  })

  it('refuses one network beyond a few, also while no other is there, and unknown networks beyond half of all; others still come in', async () => {
    const { begun, ask, end } = queueOf({ atOnce: 1, waiting: 6, waitingOfOne: 2 })
    const networks = [...Array<string>(4).fill('guesser'), ...Array<undefined>(4), 'ann']
    const answers = networks.map((network, index) => ask(index, network))
    const served = [0, 1, 4, 8, 2, 5, 6]
    await end(...served)
    expect(begun).to.deep.equal(served)
    const expected = [0, 1, 2, OVERLOADED, 4, 5, 6, OVERLOADED, 8]
    expect(await Promise.all(answers)).to.deep.equal(expected)

    const alone = queueOf({ atOnce: 1, waiting: 6, waitingOfOne: 2 })
    const three = [0, 1, 2].map((index) => alone.ask(index, 'guesser'))
    const first = await Promise.race([alone.ask(3, 'guesser'), turns(2).then(() => 'it waits')])
    expect(first).to.equal(OVERLOADED)
    await alone.end(0, 1, 2)
    expect(await Promise.all(three)).to.deep.equal([0, 1, 2])
  })

  it('has its places back after work that failed', async () => {
    const queue = createHashQueue({ atOnce: 1, waiting: 1, waitingOfOne: 1 })
    const failure = new Error('no memory is left')
    const fail = () => Promise.reject(failure)
    for (let time = 0; time < 3; time += 1) {
      const answers = await Promise.allSettled([queue(fail), queue(fail)])
      for (const answer of answers) expect(answer).to.have.property('reason', failure)
    }
    expect(await queue(async () => 'hashed')).to.equal('hashed')
  })

  for (const [processors, poolSize, atOnce] of [
    [1, undefined, 1],
    [2, undefined, 2],
    [3, undefined, 3],
    [4, undefined, 3],
    [64, undefined, 3],
    [8, '16', 8],
    [64, '16', 15],
    [8, '2', 1],
    [8, '1', 1],
    // As libuv reads them.
    [8, '0', 1],
    [8, '', 1],
    [8, 'many', 1],
  ] as const) {
    it(`runs ${atOnce} on ${processors} processors with UV_THREADPOOL_SIZE ${poolSize}: one thread is left, and few wait`, () => {
      const limits = { atOnce, waiting: atOnce * 32, waitingOfOne: atOnce * 4 }
      expect(hashQueueLimits(processors, poolSize)).to.deep.equal(limits)
    })
  }
})
