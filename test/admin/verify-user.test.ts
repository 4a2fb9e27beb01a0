import { expect } from 'chai'
import { memoryUsers, type UserStore } from '../../src/index.ts'
import {
  actionsOf,
  adminOf,
  codeOf,
  expectAudited,
  refusalOf,
  suiteAdmin,
} from '../support/admin-calls.ts'
import { addUnverified, isVerified, mailsTo } from '../support/blocked-login.ts'
import { cliOf } from '../support/cli.ts'
import { startHarness } from '../support/harness.ts'
import { suiteHarness } from '../support/suite-harness.ts'

describe('user verify and user unverify', () => {
  const h = suiteHarness()
  const admin = suiteAdmin(h)
  const cli = cliOf(h)

  it('change the address, once, and are audited with who asked; no mail is sent', async () => {
    const user = await addUnverified(h)
    const { id, username, email } = user
    const mails = mailsTo(h, user)
    expect(await admin.verifyUser({ id })).to.deep.equal({ email, changed: true })
    expectAudited(actionsOf(h, 'user_verify').at(-1), 'user_verify', user)
    expect(await isVerified(h, user)).to.equal(true)
    expect(await admin.verifyUser({ id })).to.deep.equal({ email, changed: false })
    expect((await cli.done(['user', 'unverify', username])).stdout).to.equal(
      `${email} is unverified now.\n`,
    )
    expectAudited(actionsOf(h, 'user_unverify').at(-1), 'user_unverify', user)
    expect(await isVerified(h, user)).to.equal(false)
    expect((await cli.done(['user', 'unverify', username])).stdout).to.match(/^Nothing changed: /)
    expect((await cli.done(['user', 'verify', username])).stdout).to.match(/ is verified now\.\n$/)
    expect(mailsTo(h, user)).to.equal(mails)
    // What was asked for each time, and what changed something.
    const made = actionsOf(h).filter(({ accountId }) => accountId === id)
    expect(made.map(({ details }) => [details.action, details['changed']])).to.deep.equal([
      ['user_verify', undefined],
      ['user_verified', 'true'],
      ['user_verify', undefined],
      ['user_unverify', undefined],
      ['user_unverified', 'true'],
      ['user_unverify', undefined],
      ['user_verify', undefined],
      ['user_verified', 'true'],
    ])
  })

  it('refuse a disabled account and one without an address, and change nothing', async () => {
    const off = await h.addUser({ username: 'off', disabled: true, emailVerified: false })
    const none = await h.addUser({ username: 'none', email: undefined, emailVerified: false })
    expect(await codeOf(admin.verifyUser({ id: off.id }))).to.deep.equal([409, 'not_verified'])
    for (const call of ['verifyUser', 'unverifyUser'] as const)
      expect(await codeOf(admin[call]({ id: none.id }))).to.deep.equal([409, 'no_address'])
    expect(await isVerified(h, off)).to.equal(false)
    await h.changeUser(off, { disabled: false })
    expect((await admin.verifyUser({ id: off.id })).changed).to.equal(true)
  })

  it('verify is refused where another account has the address verified, which names that one still', async () => {
    const email = 'taken@users.example'
    const owner = await h.addUser({ username: 'owner', email })
    const half = await h.addUser({ username: 'half', email, emailVerified: false })
    expect(await codeOf(admin.verifyUser({ id: half.id }))).to.deep.equal([409, 'address_taken'])
    expect(await isVerified(h, half)).to.equal(false)
    expect((await admin.userStatus({ id: owner.id })).cause).to.equal('not_asked')
    expect(await admin.verifyUser({ id: owner.id })).to.deep.equal({ email, changed: false })
    await h.changeUser(half, { email: 'half@users.example' })
    expect((await admin.verifyUser({ id: half.id })).changed).to.equal(true)
  })

  it('verify of two accounts of one address at once: never both, and one once it is asked for alone', async () => {
    const users = memoryUsers()
    let looks = 0
    const first: (() => void)[] = []
    const together: UserStore = {
      ...users,
      async findByVerifiedEmail(email) {
        const found = await users.findByVerifiedEmail(email)
        looks += 1
        // Both have looked before either of them changes anything.
        if (looks === 1) await new Promise<void>((resolve) => first.push(resolve))
        first.pop()?.()
        return found
      },
    }
    const bare = await startHarness({ flows: { users: together } })
    const email = 'twins@users.example'
    const account = { email, emailVerified: false, passwordHash: undefined, disabled: false }
    for (const id of ['u1', 'u2']) users.add({ ...account, id, username: id })
    const verify = (id: string) => adminOf(bare).verifyUser({ id })
    const answers = await Promise.allSettled(['u1', 'u2'].map(verify))
    expect((await users.findByVerifiedEmail(email)).length).to.be.at.most(1)
    for (const [at, { status }] of answers.entries()) {
      const user = await users.findById(`u${at + 1}`)
      expect(user?.emailVerified).to.equal(status === 'fulfilled')
      await adminOf(bare).unverifyUser({ id: `u${at + 1}` })
    }
    expect((await verify('u1')).changed).to.equal(true)
    expect(await codeOf(verify('u2'))).to.deep.equal([409, 'address_taken'])
    await bare.close()
  })

  it('by an address that is not verified: refused, and told why', async () => {
    const user = await addUnverified(h)
    const refusal = await refusalOf(admin.verifyUser({ user: user.email ?? '' }))
    expect(refusal).to.include({ status: 404, code: 'unknown_account' })
    expect(refusal.title).to.match(/^This address is not verified, so it names no account\./)
    expect(refusal.candidates).to.deep.equal([{ id: user.id, username: user.username }])
    expect(await isVerified(h, user)).to.equal(false)
  })

  it('unverify is refused, with the reason, where the host cannot', async () => {
    const { markEmailUnverified: _, ...able } = memoryUsers()
    const users: UserStore = able
    const bare = await startHarness({ flows: { users } })
    able.add({
      id: 'u1',
      username: 'eve',
      email: 'eve@users.example',
      emailVerified: true,
      passwordHash: undefined,
      disabled: false,
    })
    expect(await codeOf(adminOf(bare).unverifyUser({ id: 'u1' }))).to.deep.equal([
      409,
      'unsupported',
    ])
    expect(await users.findById('u1')).to.include({ emailVerified: true })
    expect((await adminOf(bare).verifyUser({ id: 'u1' })).changed).to.equal(false)
    await bare.close()
  })
})
