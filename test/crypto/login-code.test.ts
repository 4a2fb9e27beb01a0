import { expect } from 'chai'
import { createKeyRing } from '../../src/crypto/keys.ts'
import { createLoginCodes } from '../../src/crypto/login-code.ts'

const [first, second] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]

describe('The codes of logins', () => {
  const codes = (...secrets: [Buffer, ...Buffer[]]) => createLoginCodes(createKeyRing(secrets))

  it('are good under every key of the ring, and made with the first (SIG-17)', () => {
    const [old, both] = [codes(first), codes(second, first)]
    const [before, now] = [old.codeOf('a login'), both.codeOf('a login')]
    expect(now).to.equal(codes(second).codeOf('a login')).and.not.equal(before)
    for (const code of [before, now]) expect(both.isCodeOf(code, 'a login')).to.equal(true)
    expect(both.isCodeOf(before, 'another')).to.equal(false)
    expect(codes(second).isCodeOf(before, 'a login')).to.equal(false)
  })
})
