import { randomBytes, scryptSync, timingSafeEqual } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { expect } from 'chai'
import type { Hashing, User } from '../../src/index.ts'
import { hashQueueLimits } from '../../src/crypto/hash-queue.ts'
import { bcryptWork } from '../support/bcrypt-work.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { turns } from '../support/turns.ts'
import { userWithLink } from '../support/person.ts'

const NEW = 'a new password'
const LONG = 'more than bcrypt reads, '.repeat(10)

const derived = (password: string, salt: string) => scryptSync(password, salt, 32, { N: 16 })

/** What a host does that has scrypt, and what of it is under way. */
const work = { calls: [] as string[], running: 0, most: 0 }
const scrypt: Hashing = {
  async hash(password) {
    work.calls.push('hash')
    const salt = randomBytes(16).toString('hex')
    return `scrypt:${salt}:${derived(password, salt).toString('hex')}`
  },

  async verify(password, hash) {
    work.calls.push('verify')
    work.running += 1
    work.most = Math.max(work.most, work.running)
    await turns(1)
    work.running -= 1
    const [, salt = '', stored = ''] = /^scrypt:(\w+):(\w+)$/.exec(hash) ?? []
    const isReadable = stored.length === 64
    return isReadable && timingSafeEqual(derived(password, salt), Buffer.from(stored, 'hex'))
  },
}

describe('A host that hashes with something else than bcrypt', () => {
  const h = suiteHarness({ flows: { hashing: scrypt } })
  const stored = async ({ id }: User) => h.users.findById(id)

  it('has its own hash stored by a reset, and signs in with the new password alone (3.3, TIM-06)', async () => {
    const { user, link } = await userWithLink(h, {
      passwordHash: await scrypt.hash('the old password'),
    })
    expect(await h.flows.verifyPassword(await stored(user), 'the old password')).to.equal(true)
    const jobs = await bcryptWork(async () => {
      expect((await h.reset(link, NEW, 'another one')).mode).to.equal('password_mismatch')
      expect((await h.reset(link, NEW)).mode).to.equal('done')
      expect((await stored(user))?.passwordHash).to.match(/^scrypt:/)
      expect(await h.flows.verifyPassword(await stored(user), NEW)).to.equal(true)
      expect(await h.flows.verifyPassword(await stored(user), 'the old password')).to.equal(false)
    })
    expect(jobs).to.deep.equal([])
    expect((await h.reset(link, 'a later password')).mode).to.equal('invalid')
  })

  it('pays one comparison for everybody, known or not (TIM-06)', async () => {
    const user = await h.addUser({ username: 'ann', passwordHash: await scrypt.hash(LONG) })
    await h.flows.verifyPassword(undefined, NEW)
    const cases: [boolean, Parameters<typeof h.flows.verifyPassword>[0], string][] = [
      [true, user, LONG],
      [false, user, LONG.slice(0, 72)],
      [false, user, ''],
      [false, { ...user, disabled: true }, LONG],
      [false, { ...user, passwordHash: undefined }, LONG],
      [false, { ...user, passwordHash: 'no hash' }, LONG],
      [false, undefined, LONG],
      [false, undefined, 'x\uD800'],
    ]
    for (const [isRight, account, password] of cases) {
      work.calls.splice(0)
      expect(await h.flows.verifyPassword(account, password)).to.equal(isRight)
      expect(work.calls).to.deep.equal(['verify'])
    }
  })

  it('hashes in the same queue as with bcrypt (RATE-15)', async () => {
    const { atOnce, waiting } = hashQueueLimits(
      availableParallelism(),
      process.env['UV_THREADPOOL_SIZE'],
    )
    work.most = 0
    const posts = Array.from({ length: atOnce + waiting + 1 }, () =>
      h.flows.verifyPassword(undefined, NEW),
    )
    const outcomes = await Promise.allSettled(posts)
    expect(work.most).to.equal(atOnce)
    const refused = outcomes.filter(({ status }) => status === 'rejected')
    expect(refused.at(-1)).to.have.nested.property('reason.code', 'ERR_OVERLOADED')
  })
})
