import bcrypt from 'bcrypt'
import { expect } from 'chai'
import { createPasswordCheck, readable, sameWork } from '../../examples/server/password-check.ts'
import { memoryUsers } from '../../src/index.ts'

const COST = 6
const PASSWORD = 'correct horse battery'

/** Rounds of bcrypt, as its documentation counts them. */
function roundsOf(hashes: string[]): number {
  return hashes.reduce((sum, hash) => sum + 2 ** Number(hash.slice(4, 6)), 0)
}

const hashOf = (cost: number) => `$2b$${String(cost).padStart(2, '0')}$${'x'.repeat(53)}`

describe('The password check of the example server', () => {
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

    const unreadable: Record<string, string | undefined> = {
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
    for (const [what, stored] of Object.entries(unreadable)) {
      it(`and so that ${what} is the work of nobody's`, () => {
        expect(readable(stored)).to.equal(undefined)
        expect(sameWork(readable(stored), COST)).to.deep.equal(sameWork(undefined, COST))
      })
    }
  })

  describe('answers the user', () => {
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
        const users = memoryUsers()
        const check = createPasswordCheck(users, COST)
        const ann = {
          id: '1',
          username: 'ann',
          email: 'ann@users.example',
          emailVerified: true,
          passwordHash: hashes[what],
          disabled: false,
        }
        users.add(ann)
        for (const wrong of ['', 'wrong', `${PASSWORD} `, PASSWORD.toUpperCase(), 'x'.repeat(73)]) {
          expect(await check('ann', wrong), wrong).to.equal(undefined)
        }
        expect(await check('nobody', PASSWORD)).to.equal(undefined)
        expect(await check('ann', PASSWORD)).to.deep.equal(ann)
        expect(await check('ANN@users.example', PASSWORD)).to.deep.equal(ann)
        users.add({ ...ann, disabled: true })
        expect(await check('ann', PASSWORD)).to.equal(undefined)
        users.add({ ...ann, passwordHash: undefined })
        expect(await check('ann', '')).to.equal(undefined)
      })
    }
  })
})
