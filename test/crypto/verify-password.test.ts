import bcrypt from 'bcrypt'
import { expect } from 'chai'
import { createHashQueue } from '../../src/crypto/hash-queue.ts'
import { createVerifyPassword, readable, sameWork } from '../../src/crypto/hashing.ts'
import { bcryptWork } from '../support/bcrypt-work.ts'

const COST = 6
const PASSWORD = 'correct horse battery'
const LONGEST = 'x'.repeat(72)

/** Rounds of bcrypt, as its documentation counts them. */
function roundsOf(hashes: string[]): number {
  return hashes.reduce((sum, hash) => sum + 2 ** Number(hash.slice(4, 6)), 0)
}

const hashOf = (cost: number) => `$2b$${String(cost).padStart(2, '0')}$${'x'.repeat(53)}`

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

describe('verifyPassword', () => {
  const queue = () => createHashQueue({ atOnce: 1, waiting: Infinity, waitingOfOne: Infinity })
  const verifier = () => createVerifyPassword(COST, queue())

  describe('costs the same work for everybody (TIM-06)', () => {
    it('so that a stored hash of a lower cost is made up for: as many hashes, as many rounds', () => {
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
    })

    it('and so that this adds little to a hash of the usual cost', () => {
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
      const ann = { passwordHash: await bcrypt.hash(PASSWORD, COST), disabled: false }
      const everybody = [
        undefined,
        ann,
        { ...ann, disabled: true },
        ...Object.values(UNREADABLE).map((passwordHash) => ({ ...ann, passwordHash })),
        { ...ann, passwordHash: await bcrypt.hash(PASSWORD, 4) },
      ]
      const workOf = (user: (typeof everybody)[number], password = PASSWORD) =>
        bcryptWork(() => verifyPassword(user, password))
      const work = Array<string>(COST + 2).fill('bcrypt:CompareAsyncWorker')
      for (const user of everybody) expect(await workOf(user)).to.deep.equal(work)
      for (const password of ['wrong', '', 'x'.repeat(73), `${PASSWORD}\0`, '\uD800']) {
        expect(await workOf(ann, password)).to.deep.equal(work)
      }
      const dearer = { ...ann, passwordHash: await bcrypt.hash(PASSWORD, COST + 1) }
      for (const user of [dearer, ...everybody]) {
        expect(await workOf(user)).to.have.length(work.length + 1)
      }
    })

    it('except for a hash that is dearer by more than two: it is compared alone, is reported, and slows no other', async () => {
      const told: number[] = []
      const verifyPassword = createVerifyPassword(COST, queue(), (cost) => told.push(cost))
      const hashed = async (cost: number) => ({
        passwordHash: await bcrypt.hash(PASSWORD, cost),
        disabled: false,
      })
      const dear = await hashed(COST + 3)
      expect(await bcryptWork(() => verifyPassword(dear, 'wrong'))).to.have.length(1)
      expect(await verifyPassword(dear, PASSWORD)).to.equal(true)
      expect(told).to.deep.equal([COST + 3, COST + 3])
      expect(await bcryptWork(() => verifyPassword(undefined, PASSWORD))).to.have.length(COST + 2)
      expect(await verifyPassword(await hashed(COST + 2), PASSWORD)).to.equal(true)
      expect(await bcryptWork(() => verifyPassword(undefined, PASSWORD))).to.have.length(COST + 4)
      expect(told).to.have.length(2)
    })
  })

  describe('answers true', () => {
    const hashes: Record<string, string> = {}

    before(async () => {
      for (const cost of [4, COST, COST + 1]) {
        hashes[`a hash of cost ${cost}`] = await bcrypt.hash(PASSWORD, cost)
      }
      const atCost = hashes[`a hash of cost ${COST}`] ?? ''
      hashes['a hash as PHP writes it'] = atCost.replace('$2b', '$2y')
      hashes['an older version'] = atCost.replace('$2b', '$2a')
    })

    for (const what of [
      'a hash of cost 4',
      'a hash of cost 6',
      'a hash of cost 7',
      'a hash as PHP writes it',
      'an older version',
    ]) {
      it(`for the right password alone, with ${what}`, async () => {
        const verifyPassword = verifier()
        const ann = { passwordHash: hashes[what], disabled: false }
        for (const wrong of ['', 'wrong', `${PASSWORD} `, PASSWORD.toUpperCase(), LONGEST]) {
          expect(await verifyPassword(ann, wrong), wrong).to.equal(false)
        }
        expect(await verifyPassword(ann, PASSWORD)).to.equal(true)
        expect(await verifyPassword(undefined, PASSWORD)).to.equal(false)
        expect(await verifyPassword({ ...ann, disabled: true }, PASSWORD)).to.equal(false)
        for (const password of ['', PASSWORD]) {
          const none = { ...ann, passwordHash: undefined }
          expect(await verifyPassword(none, password)).to.equal(false)
        }
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
        const ann = { passwordHash: await bcrypt.hash(right, 4), disabled: false }
        expect(await verifyPassword(ann, wrong)).to.equal(false)
        expect(await verifyPassword(ann, right)).to.equal(true)
      })
    }
  })

  it('waits in the queue, and is refused like anything else there', async () => {
    const verifyPassword = createVerifyPassword(
      COST,
      createHashQueue({ atOnce: 1, waiting: 9, waitingOfOne: 1 }),
    )
    const asked = [1, 2, 3].map(() => verifyPassword(undefined, PASSWORD, 'a network'))
    const [first, second, third] = await Promise.allSettled(asked)
    for (const served of [first, second]) expect(served).to.have.property('value', false)
    expect(third).to.have.nested.property('reason.code', 'ERR_OVERLOADED')
  })
})
