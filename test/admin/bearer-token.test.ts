import { expect } from 'chai'
import { assert, property, string } from 'fast-check'
import { createBearerCheck } from '../../src/admin/bearer-tokens.ts'

const TOKEN = 'an-admin-token-of-the-tests-long-enough'

function isOneOf(...tokens: string[]): (presented: string) => boolean {
  const find = createBearerCheck(tokens.map((token) => [token, 'kept']))
  return (presented) => find(presented).length === 1
}

describe('createBearerCheck() (5.1)', () => {
  it('takes the token itself, and nothing shorter, longer or alike (ADM-04, ADM-05)', () => {
    const isAdmin = isOneOf(TOKEN)
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
    const isAdmin = isOneOf(TOKEN)
    assert(
      property(string({ maxLength: 200 }), (text) => {
        expect(isAdmin(text)).to.equal(text === TOKEN)
      }),
    )
    expect(isAdmin('x'.repeat(1_000_000))).to.equal(false)
  })

  it('takes each of several that are in force during a rotation, and nothing else (ADM-13)', () => {
    const isAdmin = isOneOf(TOKEN, `next-${TOKEN}`)
    expect(isAdmin(TOKEN)).to.equal(true)
    expect(isAdmin(`next-${TOKEN}`)).to.equal(true)
    for (const other of [`${TOKEN},next-${TOKEN}`, `next-`, ''])
      expect(isAdmin(other)).to.equal(false)
  })

  it('answers what is kept with the token that was presented, and not with another one (ADM-15)', () => {
    const find = createBearerCheck([
      [TOKEN, 'this'],
      [`next-${TOKEN}`, 'that'],
    ])
    expect(find(TOKEN)).to.deep.equal(['this'])
    expect(find(`next-${TOKEN}`)).to.deep.equal(['that'])
    expect(find(`last-${TOKEN}`)).to.deep.equal([])
  })

  it('lets nobody in where there is no token', () => {
    const isAdmin = isOneOf()
    for (const presented of ['', 'undefined', 'null', TOKEN]) {
      expect(isAdmin(presented)).to.equal(false)
    }
  })
})
