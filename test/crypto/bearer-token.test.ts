import { expect } from 'chai'
import { assert, property, string } from 'fast-check'
import { createBearerCheck } from '../../src/crypto/bearer-token.ts'

const TOKEN = 'an-admin-token-of-the-tests-long-enough'

describe('createBearerCheck() (5.1)', () => {
  it('takes the token itself, and nothing shorter, longer or alike (ADM-04, ADM-05)', () => {
    const isAdmin = createBearerCheck([TOKEN])
    const lengths = [0, 1, TOKEN.length - 1, TOKEN.length, TOKEN.length + 1, 100_000]
    const others = [
      ...lengths.map((length) => 'x'.repeat(length)),
      ...[...TOKEN].flatMap((_, index) => [TOKEN.slice(0, index), TOKEN.slice(index + 1)]),
      ...[...TOKEN].map((_, index) => `${TOKEN.slice(0, index)}X${TOKEN.slice(index + 1)}`),
      `${TOKEN}x`,
      `${TOKEN} `,
      ` ${TOKEN}`,
      TOKEN + TOKEN,
      `${TOKEN}\0`,
      TOKEN.toUpperCase(),
      'undefined',
    ]
    for (const other of others) expect(isAdmin(other), other.slice(0, 50)).to.equal(false)
    expect(isAdmin(TOKEN)).to.equal(true)
  })

  it('refuses every other text, of whatever length, and never throws (TIM-09)', () => {
    const isAdmin = createBearerCheck([TOKEN])
    assert(
      property(string({ maxLength: 200 }), (text) => {
        expect(isAdmin(text)).to.equal(text === TOKEN)
      }),
    )
    expect(isAdmin('x'.repeat(1_000_000))).to.equal(false)
  })

  it('takes each of several that are in force during a rotation, and nothing else (ADM-13)', () => {
    const isAdmin = createBearerCheck([TOKEN, `next-${TOKEN}`])
    expect(isAdmin(TOKEN)).to.equal(true)
    expect(isAdmin(`next-${TOKEN}`)).to.equal(true)
    for (const other of [`${TOKEN},next-${TOKEN}`, `next-`, ''])
      expect(isAdmin(other)).to.equal(false)
  })

  it('lets nobody in where there is no token', () => {
    const isAdmin = createBearerCheck([])
    for (const presented of ['', 'undefined', 'null', TOKEN]) {
      expect(isAdmin(presented)).to.equal(false)
    }
  })
})
