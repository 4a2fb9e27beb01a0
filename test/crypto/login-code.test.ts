import { createHmac } from 'node:crypto'
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

  it('are all as likely: a word beyond the last whole million is drawn again', () => {
    const [{ bytes }] = createKeyRing([first])('login_code')
    const wordOf = (text: string) =>
      createHmac('sha256', bytes).update(text).digest().readUInt32BE()
    const { codeOf } = codes(first)
    for (let id = 0, isBeyond = false; !isBeyond; id += 1) {
      const [word, next] = [wordOf(`0 ${id}`), wordOf(`1 ${id}`)]
      isBeyond = word >= 4_294_000_000
      expect(codeOf(`${id}`)).to.equal(`${isBeyond ? next : word}`.slice(-6).padStart(6, '0'))
    }
  })
})
