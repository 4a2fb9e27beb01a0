import { expect } from 'chai'
import { CompactEncrypt } from 'jose'
import { createKeyRing } from '../../src/crypto/keys.ts'
import { createSecretBox } from '../../src/crypto/secret-box.ts'

const [first, second] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
const FOR = 'smtp_password for mail.example'
const SECRET = 'S3cr3t canary / of the "SMTP" pässword'

describe('createSecretBox()', () => {
  const keys = createKeyRing([first])
  const box = createSecretBox(keys)

  it('opens what it sealed, every text of it', async () => {
    for (const plain of [SECRET, '', ' ', '🔑', '\0', 'x'.repeat(10_000)]) {
      expect(box.open(box.seal(plain, FOR), FOR)).to.equal(plain)
    }
  })

  it('seals as a compact JWE that names its key and shows nothing else, each time anew', async () => {
    const [one, other] = [box.seal(SECRET, FOR), box.seal(SECRET, FOR)]
    expect(one).not.to.equal(other)
    const header = JSON.parse(String(Buffer.from(one.split('.')[0] ?? '', 'base64url')))
    expect(header).to.include({ alg: 'dir', enc: 'A256GCM', kid: keys('jwe')[0].kid })
    expect(header).to.have.all.keys('alg', 'enc', 'kid', 'purpose')
    expect(JSON.stringify(header)).not.to.include('mail.example')
    expect(one).not.to.include('canary')
    expect(Buffer.from(one.split('.')[3] ?? '', 'base64url').toString('latin1')).not.to.include(
      'canary',
    )
  })

  it('opens under an earlier key of the ring, and seals under the first', async () => {
    const rotated = createSecretBox(createKeyRing([second, first]))
    expect(rotated.open(box.seal(SECRET, FOR), FOR)).to.equal(SECRET)
    const newer = rotated.seal(SECRET, FOR)
    expect(box.open(newer, FOR)).to.equal(undefined)
    expect(createSecretBox(createKeyRing([second])).open(newer, FOR)).to.equal(SECRET)
  })

  it('opens nothing that was sealed for something else', async () => {
    const sealed = box.seal(SECRET, FOR)
    for (const other of ['smtp_password for evil.example', 'smtp_password for ', '']) {
      expect(box.open(sealed, other)).to.equal(undefined)
    }
    expect(box.open(sealed, FOR)).to.equal(SECRET)
  })

  it('opens nothing that was altered in any of its parts', async () => {
    const sealed = box.seal(SECRET, FOR)
    const parts = sealed.split('.')
    for (const at of [0, 2, 3, 4]) {
      const part = parts[at] ?? ''
      const altered = parts.with(at, (part.startsWith('A') ? 'B' : 'A') + part.slice(1)).join('.')
      expect(box.open(altered, FOR), `part ${at}`).to.equal(undefined)
    }
  })

  it('opens nothing that is no such JWE', async () => {
    const { kid, bytes } = keys('jwe')[0]
    const text = new TextEncoder().encode(SECRET)
    const otherEncryption = await new CompactEncrypt(text)
      .setProtectedHeader({ alg: 'dir', enc: 'A128CBC-HS256', kid })
      .encrypt(bytes)
    const wrapped = await new CompactEncrypt(text)
      .setProtectedHeader({ alg: 'A256KW', enc: 'A256GCM', kid })
      .encrypt(bytes)
    const nameless = await new CompactEncrypt(text)
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
      .encrypt(bytes)
    const others = [otherEncryption, wrapped, nameless, '', '.', '....', 'plain text', SECRET]
    for (const other of others) expect(box.open(other, FOR), other).to.equal(undefined)
  })
})
