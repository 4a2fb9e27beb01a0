import { expect } from 'chai'
import { assert, property, string } from 'fast-check'
import { createBearerCheck } from '../../src/crypto/bearer-token.ts'

const TOKEN = 'an-admin-token-of-the-tests-long-enough'

describe('The check of the admin token', () => {
  const isRight = createBearerCheck([TOKEN])

  it('accepts the token and nothing near it', () => {
    expect(isRight(TOKEN)).to.equal(true)
    for (let length = 0; length < TOKEN.length; length += 1) {
      expect(isRight(TOKEN.slice(0, length))).to.equal(false)
      expect(isRight(TOKEN.slice(TOKEN.length - length))).to.equal(false)
    }
    for (const near of [
      `${TOKEN} `,
      ` ${TOKEN}`,
      `${TOKEN}\0`,
      TOKEN.toUpperCase(),
      TOKEN + TOKEN,
    ]) {
      expect(isRight(near)).to.equal(false)
    }
  })

  it('refuses every other text, of whatever length, and never throws (TIM-09)', () => {
    assert(
      property(string({ maxLength: 200 }), (text) => {
        expect(isRight(text)).to.equal(text === TOKEN)
      }),
    )
    expect(isRight('x'.repeat(1_000_000))).to.equal(false)
  })

  it('accepts nothing where no token is set', () => {
    const isNever = createBearerCheck([])
    for (const text of ['', 'undefined', 'null', TOKEN]) expect(isNever(text)).to.equal(false)
  })
})
