import bcrypt from 'bcrypt'
import { expect } from 'chai'
import { createPasswordCheck } from '../../examples/server/password-check.ts'
import { createHashQueue } from '../../src/crypto/hash-queue.ts'
import { createVerifyPassword } from '../../src/crypto/hashing.ts'
import { memoryUsers } from '../../src/index.ts'
import { bcryptWork } from '../support/bcrypt-work.ts'

const PASSWORD = 'correct horse battery'

describe('The password check of the example server', () => {
  const verifyPassword = createVerifyPassword(
    4,
    createHashQueue({ atOnce: 1, waiting: 0, waitingOfOne: 0 }),
  )
  const passwordHash = bcrypt.hashSync(PASSWORD, 4)
  const ann = {
    id: '1',
    username: 'ann',
    email: 'ann@users.example',
    emailVerified: true,
    passwordHash,
    disabled: false,
  }
  const check = (...users: (typeof ann)[]) =>
    createPasswordCheck(memoryUsers(users), {
      verifyPassword: (user, password) => verifyPassword(user, password),
    })

  it('answers the user for the right password, by the username or the verified address', async () => {
    expect(await check(ann)('ann', PASSWORD)).to.deep.equal(ann)
    expect(await check(ann)('ANN@users.example', PASSWORD)).to.deep.equal(ann)
    expect(await check(ann)(' ann@users.example ', PASSWORD)).to.deep.equal(ann)
  })

  it('answers nobody for anything else', async () => {
    expect(await check(ann)('ann', 'wrong')).to.equal(undefined)
    expect(await check(ann)('nobody', PASSWORD)).to.equal(undefined)
    expect(await check(ann)('ANN', PASSWORD)).to.equal(undefined)
    expect(await check(ann)(' ann', PASSWORD)).to.equal(undefined)
    const unverified = { ...ann, emailVerified: false }
    expect(await check(unverified)('ann@users.example', PASSWORD)).to.equal(undefined)
    expect(await check({ ...ann, disabled: true })('ann', PASSWORD)).to.equal(undefined)
  })

  it('answers the owner of a verified address before the user who is called so, and of two neither', async () => {
    const named = { ...ann, id: '2', username: 'ann@users.example', email: 'other@users.example' }
    expect(await check(named)('ann@users.example', PASSWORD)).to.deep.equal(named)
    expect(await check(named, ann)('ann@users.example', PASSWORD)).to.deep.equal(ann)
    const twin = { ...ann, id: '3', username: 'anna' }
    expect(await check(ann, twin)('ann@users.example', PASSWORD)).to.equal(undefined)
    const shouting = { ...twin, email: 'ANN@users.example' }
    expect(await check(ann, shouting)('ANN@users.example', PASSWORD)).to.deep.equal(shouting)
  })

  it('takes the work of a wrong password for an unknown name, too (TIM-06)', async () => {
    const wrong = await bcryptWork(() => check(ann)('ann', 'wrong'))
    expect(wrong).not.to.deep.equal([])
    expect(await bcryptWork(() => check(ann)('nobody', 'wrong'))).to.deep.equal(wrong)
  })
})
