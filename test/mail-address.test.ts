import { expect } from 'chai'
import { isMailAddress } from '../src/mail-address.ts'

describe('isMailAddress', () => {
  for (const address of [
    'ada@example.org',
    'Ada.Lovelace+reset@mail.example.co.uk',
    "o'neil@example.org",
    'root@localhost',
    'a@xn--bcher-kva.example',
    `${'a'.repeat(64)}@b.io`,
  ]) {
    it(`takes ${address}`, () => {
      expect(isMailAddress(address)).to.equal(true)
    })
  }

  it('answers at once for a long hostile value', () => {
    const startedAt = performance.now()
    expect(isMailAddress(`${'a.'.repeat(50_000)}@`)).to.equal(false)
    expect(isMailAddress(`a@${'a-'.repeat(120)}`)).to.equal(false)
    expect(performance.now() - startedAt).to.be.below(50)
  })
})
