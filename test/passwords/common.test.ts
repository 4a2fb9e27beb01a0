import { randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { expect } from 'chai'
import { isCommon, KEY_BYTES, LIST, loadCommonPasswords } from '../../src/passwords/common.ts'

const COMMON = [
  '123456',
  'password',
  'qwerty123456',
  '123456789012345',
  'passwordpassword',
  'letmein',
  ' '.repeat(15),
]
const OTHERS = ['correct horse battery', 'a new password', 'Zw4nzig Katzen im Regen']

describe('The list of common passwords (SP 800-63B, 3.1.1.2)', () => {
  it('has more than 100,000, in less than 5 MB of memory and 2 MB of the package', async () => {
    const { length } = await loadCommonPasswords()
    expect(length / KEY_BYTES).to.be.greaterThan(100_000)
    expect(length).to.be.lessThan(5_000_000)
    expect(statSync(LIST).size).to.be.lessThan(2_000_000)
  })

  it('has what everybody tries first, also in other letters and with blanks around (PWD-11)', async () => {
    for (const password of COMMON) {
      const wide = password.replace(/\w/g, (one) =>
        String.fromCodePoint(one.charCodeAt(0) + 0xfee0),
      )
      for (const typed of [password, password.toUpperCase(), ` ${password}\t`, wide])
        expect(await isCommon(typed), typed).to.equal(true)
    }
  })

  it('has neither good passwords nor random ones', async () => {
    const random = Array.from({ length: 2_000 }, () => randomBytes(9).toString('base64url'))
    for (const password of [...OTHERS, ...random])
      expect(await isCommon(password), password).to.equal(false)
  })
})
