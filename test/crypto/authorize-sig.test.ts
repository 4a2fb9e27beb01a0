import { createHmac } from 'node:crypto'
import { expect } from 'chai'
import { createAuthorizeSig } from '../../src/crypto/authorize-sig.ts'
import { createKeyRing } from '../../src/crypto/keys.ts'
import { newToken } from '../../src/crypto/token.ts'
import type { CarriedParameters } from '../../src/index.ts'

const [first, second] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
const token = newToken()
const carried = {
  clientId: 'app',
  redirectUri: 'https://app.example/cb',
  scope: 'openid email',
  state: 's',
} satisfies CarriedParameters

describe('authorize_sig (5.4)', () => {
  const keys = createKeyRing([first])
  const sig = createAuthorizeSig(keys)
  const signature = sig.sign(token, carried)

  it('is an HMAC-SHA-256 as base64url, the same for the same link (SIG-15)', () => {
    expect(signature).to.match(/^[A-Za-z0-9_-]{43}$/)
    expect(sig.sign(token, { ...carried })).to.equal(signature)
    expect(sig.verify(signature, token, carried)).to.equal(true)
  })

  it('does not look at the order of the parameters', () => {
    const { clientId, redirectUri, scope, state } = carried
    expect(sig.verify(signature, token, { state, scope, redirectUri, clientId })).to.equal(true)
  })

  const { clientId: _c, ...noClient } = carried
  const { redirectUri: _r, ...noUri } = carried
  const { scope: _s, ...noScope } = carried
  const { state: _t, ...noState } = carried
  const altered: Record<string, CarriedParameters> = {
    'no client_id': noClient,
    'no redirect_uri': noUri,
    'no scope': noScope,
    'no state': noState,
    nothing: {},
    'an empty client_id': { ...carried, clientId: '' },
    'an empty redirect_uri': { ...carried, redirectUri: '' },
    'an empty scope': { ...carried, scope: '' },
    'an empty state': { ...carried, state: '' },
    'another client_id': { ...carried, clientId: 'apq' },
    'another case': { ...carried, clientId: 'App' },
    'another redirect_uri': { ...carried, redirectUri: 'https://app.example/cb/' },
    'another scope': { ...carried, scope: 'email openid' },
    'another state': { ...carried, state: 's ' },
    'values that changed places': { ...carried, scope: carried.state, state: carried.scope },
    'a boundary that moved': { ...carried, scope: 'openid emails', state: '' },
    'a boundary in quotes that moved': { ...carried, scope: 'openid email","s', state: '' },
    'the word null': { ...carried, state: 'null' },
  }
  for (const [what, other] of Object.entries(altered)) {
    it(`does not verify ${what}`, () => {
      expect(sig.verify(signature, token, other)).to.equal(false)
      expect(sig.verify(sig.sign(token, other), token, other)).to.equal(true)
    })
  }

  it('does not verify another token, nor one that took over a part of the parameters', () => {
    expect(sig.verify(signature, newToken(), carried)).to.equal(false)
    expect(sig.verify(signature, `${token}","app`, noClient)).to.equal(false)
  })

  it('keeps an absent parameter apart from an empty one and from the word null', () => {
    const all = [{}, { state: '' }, { state: 'null' }, { scope: '' }, { state: 'undefined' }]
    const signatures = all.map((each) => sig.sign(token, each))
    expect(new Set(signatures)).to.have.property('size', all.length)
  })

  it('refuses whatever is no signature, and never throws (TIM-10)', () => {
    const at = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    // The last character of 43 has two bits that decode to nothing.
    const respelled = signature.slice(0, -1) + at[at.indexOf(signature.at(-1) ?? '') ^ 1]
    const others = ['', 'A', signature.slice(1), `${signature}A`, `${signature}=`, `${signature}\n`]
    others.push(respelled, 'A'.repeat(43), 'A'.repeat(10_000), 'é'.repeat(43), '\0'.repeat(43))
    others.push(Buffer.from(signature, 'base64url').toString('hex'))
    for (const other of others) expect(sig.verify(other, token, carried), other).to.equal(false)
  })

  it('looks at every character of a signature', () => {
    for (const [index, character] of [...signature].entries()) {
      const other = character === 'A' ? 'Q' : 'A'
      const changed = signature.slice(0, index) + other + signature.slice(index + 1)
      expect(sig.verify(changed, token, carried), `character ${index}`).to.equal(false)
    }
    expect(sig.verify(signature, token, carried)).to.equal(true)
  })

  it('verifies what an earlier key of the ring signed, and signs with the first', () => {
    const rotated = createAuthorizeSig(createKeyRing([second, first]))
    expect(rotated.verify(signature, token, carried)).to.equal(true)
    const newer = rotated.sign(token, carried)
    expect(newer).not.to.equal(signature)
    expect(sig.verify(newer, token, carried)).to.equal(false)
    expect(createAuthorizeSig(createKeyRing([second])).verify(newer, token, carried)).to.equal(true)
  })

  it('uses neither the ring itself nor the key of another purpose (SIG-12)', () => {
    const { clientId, redirectUri, scope, state } = carried
    const text = JSON.stringify([token, clientId, redirectUri, scope, state])
    const wrong = [first, Buffer.alloc(0), ...keys('login_code').map(({ bytes }) => bytes)]
    for (const key of [...wrong, ...keys('jwe').map(({ bytes }) => bytes)]) {
      const forged = createHmac('sha256', key).update(text).digest('base64url')
      expect(sig.verify(forged, token, carried)).to.equal(false)
    }
  })
})
