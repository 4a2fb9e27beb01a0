import { createHmac } from 'node:crypto'
import { expect } from 'chai'
import { createKeyRing, type KeyPurpose } from '../../src/crypto/keys.ts'

const PURPOSES: KeyPurpose[] = ['authorize_sig', 'jwe', 'keyed_hash', 'login_code']
const [first, second] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]

/** HKDF by the letter of RFC 5869, for one block and no salt. */
function hkdf(secret: Buffer, info: string): Buffer {
  const extracted = createHmac('sha256', Buffer.alloc(32)).update(secret).digest()
  return createHmac('sha256', extracted).update(`${info}\x01`).digest()
}

describe('createKeyRing()', () => {
  const keys = createKeyRing([first, second])

  it('derives each key by HKDF-SHA-256 for its purpose', () => {
    for (const purpose of PURPOSES) {
      const expected = [first, second].map((secret) =>
        hkdf(secret, `oidc-account-flows/${purpose}`),
      )
      expect(keys(purpose).map(({ bytes }) => bytes)).to.deep.equal(expected)
    }
  })

  it('gives no two purposes and no two secrets the same key, and none the secret itself', () => {
    const all = PURPOSES.flatMap((purpose) =>
      keys(purpose).map(({ bytes }) => bytes.toString('hex')),
    )
    const secrets = [first, second].map((secret) => secret.toString('hex'))
    expect(new Set([...all, ...secrets])).to.have.property('size', 2 * PURPOSES.length + 2)
  })

  it('names each key, the same in every process, telling nothing about it', () => {
    const kids = PURPOSES.flatMap((purpose) => keys(purpose).map(({ kid }) => kid))
    expect(new Set(kids)).to.have.property('size', kids.length)
    const again = createKeyRing([first, second])
    expect(PURPOSES.flatMap((purpose) => again(purpose).map(({ kid }) => kid))).to.deep.equal(kids)
    for (const { kid, bytes } of keys('jwe')) {
      expect(kid).to.match(/^[A-Za-z0-9_-]{11}$/)
      expect(bytes.toString('base64url')).not.to.include(kid)
    }
  })

  it('keeps the order of the ring, so that the first is in force', () => {
    const rotated = createKeyRing([second, first])
    for (const purpose of PURPOSES) {
      expect(rotated(purpose)).to.deep.equal(keys(purpose).toReversed())
    }
  })
})
