import bcrypt from 'bcrypt'
import { expect } from 'chai'
import { hashPassword, passwordDigest, refusePassword } from '../../src/crypto/password.ts'

const LIMITS = { minLength: 8, maxLength: 64 }

const refusalOf = (password: string, confirmation: string, limits = LIMITS) =>
  refusePassword(password, confirmation, limits)?.refusal

describe('refusePassword() (8)', () => {
  const table: [password: string, refusal: string | undefined][] = [
    ['', 'password_too_short'],
    ['1234567', 'password_too_short'],
    ['12345678', undefined],
    ['        ', undefined],
    ['x'.repeat(64), undefined],
    ['x'.repeat(65), 'password_too_long'],
    ['x'.repeat(1_000_000), 'password_too_long'],
    ['🔑'.repeat(7), 'password_too_short'],
    ['🔑'.repeat(8), undefined],
    ['🔑'.repeat(18), undefined],
    ['🔑'.repeat(19), 'password_too_long'],
    ['é'.repeat(36), undefined],
    [`${'é'.repeat(36)}a`, 'password_too_long'],
    ['long enough\0', 'password_invalid'],
    ['long enough\uD800', 'password_invalid'],
    ['\uDC00\uD800 long enough', 'password_invalid'],
    ['long\nenough', undefined],
  ]
  for (const [password, refusal] of table) {
    const shown = JSON.stringify(password).slice(0, 30)
    it(`${shown} (${password.length} UTF-16 units): ${refusal ?? 'accepted'}`, () => {
      expect(refusalOf(password, password)).to.equal(refusal)
    })
  }

  it('counts code points at both limits, and bytes whatever the maximum (PWD-09)', () => {
    const narrow = { minLength: 3, maxLength: 3 }
    expect(refusalOf('ab🔑', 'ab🔑', narrow)).to.equal(undefined)
    expect(refusalOf('a🔑', 'a🔑', narrow)).to.equal('password_too_short')
    expect(refusalOf('abc🔑', 'abc🔑', narrow)).to.equal('password_too_long')
    const wide = { minLength: 1, maxLength: 1_000 }
    expect(refusalOf('x'.repeat(72), 'x'.repeat(72), wide)).to.equal(undefined)
    expect(refusalOf('x'.repeat(73), 'x'.repeat(73), wide)).to.equal('password_too_long')
  })

  for (const confirmation of ['', 'Long enough', 'long enough ', 'long enough\0', 'long']) {
    it(`a confirmation ${JSON.stringify(confirmation)} is another password`, () => {
      expect(refusePassword('long enough', confirmation, LIMITS)).to.deep.equal({
        refusal: 'password_mismatch',
        also: undefined,
        excess: 0,
      })
    })
  }

  it('tells what is wrong besides, where both passwords differ', () => {
    for (const [password, also] of [
      ['short', 'password_too_short'],
      ['x'.repeat(65), 'password_too_long'],
      ['long enough\0', 'password_invalid'],
    ] as const) {
      const refused = refusePassword(password, 'another one', LIMITS)
      expect(refused).to.include({ refusal: 'password_mismatch', also })
    }
  })

  for (const [password, excess] of [
    ['x'.repeat(64), 0],
    ['x'.repeat(66), 2],
    ['я'.repeat(36), 0],
    ['я'.repeat(40), 4],
    ['字'.repeat(25), 1],
    [`${'я'.repeat(35)}🔑`, 1],
    ['я'.repeat(100), 64],
  ] as const) {
    it(`${password.length} times ${password.slice(0, 1)}: ${excess} are too many, and without them it fits`, () => {
      expect(refusePassword(password, password, LIMITS)?.excess ?? 0).to.equal(excess)
      const rest = Array.from(password)
        .slice(0, -excess || undefined)
        .join('')
      expect(refusalOf(rest, rest)).to.equal(undefined)
    })
  }
})

describe('hashPassword() (2.3)', () => {
  it('is bcrypt at the given cost, with a salt of its own', async () => {
    const [one, other] = [
      await hashPassword('long enough', 4),
      await hashPassword('long enough', 5),
    ]
    expect(one).to.match(/^\$2b\$04\$.{53}$/)
    expect(other).to.match(/^\$2b\$05\$.{53}$/)
    expect(one.slice(7, 29)).not.to.equal(other.slice(7, 29))
    expect(await bcrypt.compare('long enough', one)).to.equal(true)
    expect(await bcrypt.compare('long enougH', one)).to.equal(false)
  })

  it('reads all 72 bytes (PWD-14)', async () => {
    const stored = await hashPassword(`${'x'.repeat(71)}y`, 4)
    expect(await bcrypt.compare('x'.repeat(72), stored)).to.equal(false)
  })
})

describe('passwordDigest()', () => {
  it('tells two hashes apart, and a hash from none, without being one of them', () => {
    const digests = [undefined, '', 'none!', '$2b$04$a', '$2b$04$b'].map(passwordDigest)
    expect(new Set(digests)).to.have.property('size', digests.length)
    for (const digest of digests) expect(digest).to.match(/^[0-9a-f]{64}$/)
    expect(passwordDigest('$2b$04$a')).to.equal(digests[3])
  })
})
