import { createHmac } from 'node:crypto'
import { expect } from 'chai'
import { CompactEncrypt } from 'jose'
import { createAuthorizeSig, createKeyRing, type KeyPurpose } from '../../src/crypto/keys.ts'
import { createLoginCodes } from '../../src/crypto/login-code.ts'
import { createSecretBox } from '../../src/crypto/secret-box.ts'
import { hashToken, isId, isToken, newId, newToken } from '../../src/crypto/token.ts'
import type { RequestParameters } from '../../src/index.ts'

const [first, second] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
const [oldRing, newRing] = [createKeyRing([first]), createKeyRing([second])]
/** Of a process that signs with the second, and still knows the first. */
const rotatedRing = createKeyRing([second, first])

describe('A token (2.1, 2.2)', () => {
  it('is 32 random bytes as base64url, none comes twice, and every bit is set about half of the time (TOK-01)', () => {
    const tokens = Array.from({ length: 500 }, newToken)
    for (const token of tokens) {
      expect(token).to.match(/^[A-Za-z0-9_-]{43}$/)
      expect(Buffer.from(token, 'base64url')).to.have.length(32)
      expect(Buffer.from(token, 'base64url').toString('base64url')).to.equal(token)
    }
    expect(new Set(tokens.map((token) => token.slice(0, 5)))).to.have.property('size', 500)
    const all = Array.from({ length: 1_000 }, () => Buffer.from(newToken(), 'base64url'))
    for (let bit = 0; bit < 256; bit += 1) {
      const set = all.filter((bytes) => ((bytes[bit >> 3] ?? 0) >> (bit & 7)) & 1).length
      // 9 standard deviations: a fair coin fails once in 10^18 runs.
      expect(set, `bit ${bit}`).to.be.within(358, 642)
    }
  })

  it('is nothing but 43 characters of base64url, stored as the lower-case hex SHA-256 of them (FIPS 180-4)', () => {
    const hash = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'
    expect(hashToken('abc')).to.equal(hash)
    const token = newToken()
    expect(isToken(token)).to.equal(true)
    const others = ['', ' ', 'null', token.slice(1), `${token}A`, `${token}=`, `${token}\n`]
    others.push(`\n${token}`, `${token.slice(1)}+`, `${token.slice(1)}/`, `${token.slice(1)}.`)
    others.push(`${token.slice(1)}é`, `${token.slice(1)}\0`, hashToken(token), 'A'.repeat(100_000))
    for (const other of others) expect(isToken(other), JSON.stringify(other)).to.equal(false)
  })

  it('is no identifier: none comes twice, and none begins with a hyphen, which is an option on a command line', () => {
    const ids = Array.from({ length: 5_000 }, newId)
    for (const id of ids) expect([isToken(id), isId(id)]).to.deep.equal([false, true])
    expect(new Set(ids)).to.have.property('size', 5_000)
    expect(ids.filter((id) => id.startsWith('-'))).to.deep.equal([])
    expect(new Set(ids.map(([letter]) => letter))).to.have.property('size', 63)
  })
})

describe('createKeyRing()', () => {
  const PURPOSES: KeyPurpose[] = ['authorize_sig', 'jwe', 'keyed_hash', 'login_code']
  const keys = createKeyRing([first, second])

  /** HKDF by the letter of RFC 5869, for one block and no salt. */
  function hkdf(secret: Buffer, info: string): Buffer {
    const extracted = createHmac('sha256', Buffer.alloc(32)).update(secret).digest()
    return createHmac('sha256', extracted).update(`${info}\x01`).digest()
  }

  it('derives each key by HKDF-SHA-256 for its purpose, none twice, and keeps the order of the ring', () => {
    for (const purpose of PURPOSES) {
      const info = `oidc-account-flows/${purpose}`
      const expected = [hkdf(first, info), hkdf(second, info)]
      expect(keys[purpose].map(({ bytes }) => bytes)).to.deep.equal(expected)
      expect(rotatedRing[purpose]).to.deep.equal(keys[purpose].toReversed())
    }
    const all = PURPOSES.flatMap((purpose) => keys[purpose].map(({ bytes }) => bytes))
    const texts = [first, second, ...all].map((bytes) => bytes.toString('hex'))
    expect(new Set(texts)).to.have.property('size', 2 * PURPOSES.length + 2)
  })

  it('names each key, the same in every process, telling nothing about it', () => {
    const kidsOf = (ring: typeof keys) =>
      PURPOSES.flatMap((purpose) => ring[purpose]).map((key) => key.kid)
    expect(new Set(kidsOf(keys))).to.have.property('size', 2 * PURPOSES.length)
    expect(kidsOf(createKeyRing([first, second]))).to.deep.equal(kidsOf(keys))
    for (const { kid, bytes } of keys.jwe) {
      expect(kid).to.match(/^[A-Za-z0-9_-]{11}$/)
      expect(bytes.toString('base64url')).not.to.include(kid)
    }
  })
})

describe('authorize_sig (5.4)', () => {
  const token = newToken()
  const parameters = {
    clientId: 'app',
    redirectUri: 'https://app.example/cb',
    scope: 'openid email',
    state: 's',
  } satisfies RequestParameters
  const sig = createAuthorizeSig(oldRing)
  const signature = sig.sign(token, parameters)
  const { clientId, redirectUri, scope, state } = parameters

  it('is an HMAC-SHA-256 as base64url, the same for the same link, in any order of its parameters (SIG-15)', () => {
    expect(signature).to.match(/^[A-Za-z0-9_-]{43}$/)
    expect(sig.sign(token, { ...parameters })).to.equal(signature)
    expect(sig.verify(signature, token, parameters)).to.equal(true)
    expect(sig.verify(signature, token, { state, scope, redirectUri, clientId })).to.equal(true)
  })

  it('is another one for each token, presence and boundary (SIG-07)', () => {
    const rest = { redirectUri, scope, state }
    const others: RequestParameters[] = [
      { clientId, redirectUri, scope },
      { ...parameters, state: '' },
      { ...parameters, state: 'null' },
      { ...parameters, scope: state, state: scope },
      { ...parameters, scope: 'openid emails', state: '' },
      { ...parameters, scope: 'openid email","s', state: '' },
    ]
    const signatures = others.map((other) => sig.sign(token, other))
    signatures.push(signature, sig.sign(newToken(), parameters), sig.sign(`${token}","app`, rest))
    expect(new Set(signatures)).to.have.property('size', signatures.length)
  })

  it('looks at every character of a signature', () => {
    for (const [index, character] of [...signature].entries()) {
      const other = character === 'A' ? 'Q' : 'A'
      const changed = signature.slice(0, index) + other + signature.slice(index + 1)
      expect(sig.verify(changed, token, parameters), `character ${index}`).to.equal(false)
    }
    expect(sig.verify(signature, token, parameters)).to.equal(true)
  })
})

describe('The codes of logins', () => {
  const old = createLoginCodes(oldRing)
  const both = createLoginCodes(rotatedRing)
  const now = createLoginCodes(newRing)

  it('are good under every key of the ring, and made with the first (SIG-17)', () => {
    const [before, after] = [old.codeOf('a login'), both.codeOf('a login')]
    expect(after).to.equal(now.codeOf('a login')).and.not.equal(before)
    for (const code of [before, after]) expect(both.isCodeOf(code, 'a login')).to.equal(true)
    expect(both.isCodeOf(before, 'another')).to.equal(false)
    expect(now.isCodeOf(before, 'a login')).to.equal(false)
  })

  it('are all as likely: a word beyond the last whole million is drawn again', () => {
    const [{ bytes }] = oldRing.login_code
    const wordOf = (text: string) =>
      createHmac('sha256', bytes).update(text).digest().readUInt32BE()
    for (let id = 0, isBeyond = false; !isBeyond; id += 1) {
      const [word, next] = [wordOf(`0 ${id}`), wordOf(`1 ${id}`)]
      isBeyond = word >= 4_294_000_000
      expect(old.codeOf(`${id}`)).to.equal(`${isBeyond ? next : word}`.slice(-6).padStart(6, '0'))
    }
  })
})

describe('createSecretBox()', () => {
  const FOR = 'smtp_password for mail.example'
  const SECRET = 'S3cr3t canary / of the "SMTP" pässword'
  const box = createSecretBox(oldRing)

  it('opens what it sealed, every text of it: a compact JWE that names its key and shows nothing else, each time anew', () => {
    for (const plain of [SECRET, '', ' ', '🔑', '\0', 'x'.repeat(10_000)]) {
      expect(box.open(box.seal(plain, FOR), FOR)).to.equal(plain)
    }
    const sealed = box.seal(SECRET, FOR)
    expect(box.seal(SECRET, FOR)).not.to.equal(sealed)
    const [header, , , text] = sealed.split('.').map((part) => Buffer.from(part, 'base64url'))
    const told = JSON.parse(String(header))
    expect(told).to.include({ alg: 'dir', enc: 'A256GCM', kid: oldRing.jwe[0].kid })
    expect(told).to.have.all.keys('alg', 'enc', 'kid', 'purpose')
    expect(String(header)).not.to.include('mail.example')
    expect(sealed).not.to.include('canary')
    expect(text?.toString('latin1')).not.to.include('canary')
  })

  it('opens nothing that was sealed for something else, or altered in any of its parts', () => {
    const sealed = box.seal(SECRET, FOR)
    for (const other of ['smtp_password for evil.example', 'smtp_password for ', '']) {
      expect(box.open(sealed, other)).to.equal(undefined)
    }
    const parts = sealed.split('.')
    for (const at of [0, 2, 3, 4]) {
      const part = parts[at] ?? ''
      const altered = parts.with(at, (part.startsWith('A') ? 'B' : 'A') + part.slice(1)).join('.')
      expect(box.open(altered, FOR), `part ${at}`).to.equal(undefined)
    }
    expect(box.open(sealed, FOR)).to.equal(SECRET)
  })

  it('opens nothing that is no such JWE', async () => {
    const { kid, bytes } = oldRing.jwe[0]
    const others = ['', '.', '....', 'plain text', SECRET]
    for (const header of [
      { alg: 'dir', enc: 'A128CBC-HS256', kid },
      { alg: 'A256KW', enc: 'A256GCM', kid },
      { alg: 'dir', enc: 'A256GCM' },
    ]) {
      const text = new CompactEncrypt(Buffer.from(SECRET)).setProtectedHeader(header)
      others.push(await text.encrypt(bytes))
    }
    for (const other of others) expect(box.open(other, FOR), other).to.equal(undefined)
  })
})
