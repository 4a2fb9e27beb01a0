import { randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { expect } from 'chai'
import { isCommon, KEY_BYTES, LIST, loadCommonPasswords } from '../../src/passwords/common.ts'
import { isMadeOf, namesOf } from '../../src/passwords/personal.ts'

describe('The list of common passwords (SP 800-63B, 3.1.1.2)', () => {
  it('has more than 100,000, in less than 5 MB of memory and 2 MB of the package', async () => {
    const { length } = await loadCommonPasswords()
    expect(length / KEY_BYTES).to.be.greaterThan(100_000)
    expect(length).to.be.lessThan(5_000_000)
    expect(statSync(LIST).size).to.be.lessThan(2_000_000)
  })

  it('has what everybody tries first, also in other letters and with blanks around (PWD-11)', async () => {
    const common = ['123456', 'password', 'qwerty123456', '123456789012345', 'passwordpassword']
    for (const password of [...common, 'letmein', ' '.repeat(15)]) {
      const wide = password.replace(/\w/g, (one) =>
        String.fromCodePoint(one.charCodeAt(0) + 0xfee0),
      )
      for (const typed of [password, password.toUpperCase(), ` ${password}\t`, wide])
        expect(await isCommon(typed), typed).to.equal(true)
    }
  })

  it('has neither good passwords nor random ones', async () => {
    const good = ['correct horse battery', 'a new password', 'Zw4nzig Katzen im Regen']
    const random = Array.from({ length: 2_000 }, () => randomBytes(9).toString('base64url'))
    for (const password of [...good, ...random])
      expect(await isCommon(password), password).to.equal(false)
  })
})

describe('A password made of names (ASVS 6.2.11)', () => {
  const ANN = { username: 'Ann.Smith', email: 'a.smith+shop@mail.example' }
  const names = namesOf(ANN, ['Acme Café', 'login.acme-shop.example'])

  const made: Record<string, string[]> = {
    'the username': ['Ann.Smith', 'ann.smith', ' ANN.SMITH ', 'annsmith', 'smith'],
    'the address': ['a.smith+shop@mail.example', 'A.Smith+Shop', 'shop'],
    'the service': ['acme café', 'Acme Cafe\u0301', 'ACME', 'login.acme-shop.example', 'acme-shop'],
    'digits and signs around': ['ann.smith2026', '!!acme!!', '12 Smith 34', 'smith🎉'],
    'a name again and again': ['smithsmithsmith', 'acme-acme-acme', 'ann.smith ann.smith'],
    'several names': ['annsmithacme', 'smith@acme', 'login.acme'],
    'full width': ['ａｃｍｅ２０２６'],
  }
  for (const [what, passwords] of Object.entries(made)) {
    it(`is one of ${what}`, () => {
      for (const password of passwords) expect(isMadeOf(password, names), password).to.equal(true)
    })
  }

  it('is none that has other letters too, nor one that has a name of one or two letters by chance', () => {
    const others = [
      'ann likes blue tea',
      'smithy-on-the-hill',
      '7391 8264',
      'xacmey',
      ' '.repeat(15),
    ]
    for (const password of others) expect(isMadeOf(password, names), password).to.equal(false)
    const short = namesOf({ username: '7', email: undefined }, [undefined, 'x.example'])
    expect(isMadeOf('7391-8264-0012', short)).to.equal(false)
    expect(isMadeOf('77777777', short)).to.equal(true)
    expect(isMadeOf('anything', namesOf({ username: ' ', email: undefined }, []))).to.equal(false)
  })
})
