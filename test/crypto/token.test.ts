import { expect } from 'chai'
import { hashToken, isId, isToken, newId, newToken } from '../../src/crypto/token.ts'

describe('A token (2.1, 2.2)', () => {
  it('is 32 random bytes as base64url, and none comes twice (TOK-01)', () => {
    const tokens = Array.from({ length: 500 }, newToken)
    for (const token of tokens) {
      expect(token).to.match(/^[A-Za-z0-9_-]{43}$/)
      expect(Buffer.from(token, 'base64url')).to.have.length(32)
      expect(Buffer.from(token, 'base64url').toString('base64url')).to.equal(token)
    }
    expect(new Set(tokens)).to.have.property('size', 500)
    expect(new Set(tokens.map((token) => token.slice(0, 5)))).to.have.property('size', 500)
  })

  it('has every bit set about half of the time', () => {
    const all = Array.from({ length: 1_000 }, () => Buffer.from(newToken(), 'base64url'))
    for (let bit = 0; bit < 256; bit += 1) {
      const set = all.filter((bytes) => ((bytes[bit >> 3] ?? 0) >> (bit & 7)) & 1).length
      // 9 standard deviations: a fair coin fails once in 10^18 runs.
      expect(set, `bit ${bit}`).to.be.within(358, 642)
    }
  })

  it('is stored as the lower-case hex SHA-256 of its characters (FIPS 180-4)', () => {
    expect(hashToken('abc')).to.equal(
      'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    )
  })

  it('is nothing but 43 characters of base64url', () => {
    const token = newToken()
    expect(isToken(token)).to.equal(true)
    const others = ['', ' ', 'null', token.slice(1), `${token}A`, `${token}=`, `${token}\n`]
    others.push(`\n${token}`, `${token.slice(1)}+`, `${token.slice(1)}/`, `${token.slice(1)}.`)
    others.push(`${token.slice(1)}é`, `${token.slice(1)}\0`, hashToken(token), 'A'.repeat(100_000))
    for (const other of others) expect(isToken(other), JSON.stringify(other)).to.equal(false)
  })

  it('is no identifier, of which none comes twice either', () => {
    const ids = Array.from({ length: 500 }, newId)
    expect(new Set(ids)).to.have.property('size', 500)
    for (const id of ids) expect([isToken(id), isId(id)]).to.deep.equal([false, true])
  })

  it('is no identifier, and those begin with no hyphen, which a command line would take for an option', () => {
    const ids = Array.from({ length: 5_000 }, newId)
    expect(ids.filter((id) => id.startsWith('-'))).to.deep.equal([])
    expect(new Set(ids.map(([first]) => first))).to.have.property('size', 63)
  })
})
