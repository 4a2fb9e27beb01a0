import { expect } from 'chai'
import { createKeyRing } from '../../src/crypto/keys.ts'
import { createNotMeTokens, type NamedMail } from '../../src/crypto/not-me-token.ts'
import { createSecretBox } from '../../src/crypto/secret-box.ts'
import { passwordDigest } from '../../src/crypto/password.ts'
import { idOf, newId } from '../../src/crypto/token.ts'

const DAY_MS = 86_400_000
const NOW = new Date('2026-03-04T05:06:07Z')
const box = createSecretBox(createKeyRing([Buffer.alloc(32, 1)]))
const tokens = createNotMeTokens(box)
const after = (ms: number) => new Date(NOW.getTime() + ms)

const MAIL: NamedMail = {
  kind: 'password_changed',
  accountId: '6790a4c1-9be6-4a5e-8d0c-0c1f1de0a001',
  id: `changed:${newId()}`,
  locale: 'zh-Hans',
  email: `${'a'.repeat(242)}@example.org`,
  passwordDigest: passwordDigest('a hash'),
  lifetimeMs: undefined,
}

describe('createNotMeTokens()', () => {
  it('opens what it sealed, and knows the address without telling it', () => {
    for (const passwordDigest of [MAIL.passwordDigest, undefined]) {
      const mail = { ...MAIL, passwordDigest }
      const { wentTo, ...opened } = tokens.open(tokens.seal(mail, NOW), after(DAY_MS)) ?? {}
      const { email, lifetimeMs: _, ...named } = mail
      expect(opened).to.deep.equal({ ...named, msLeft: 7 * DAY_MS })
      expect([wentTo?.(email), wentTo?.('other@example.org'), wentTo?.(undefined)]).to.deep.equal([
        true,
        false,
        false,
      ])
    }
  })

  it('makes of any mail a token of about 500 characters that needs no encoding', () => {
    const token = tokens.seal(MAIL, NOW)
    expect(token).to.match(/^[\w.-]+$/)
    expect(token.length).to.be.below(520)
    expect(encodeURIComponent(token)).to.equal(token)
  })

  it('opens none later than a week after the link expired', () => {
    const token = tokens.seal({ ...MAIL, lifetimeMs: 30 * DAY_MS }, NOW)
    expect(tokens.open(token, after(37 * DAY_MS - 1))).to.include({ msLeft: 1 })
    expect(tokens.open(token, after(37 * DAY_MS))).to.equal(undefined)
  })

  it('opens none of a notice for longer than eight days; a clock that is behind does not matter', () => {
    const token = tokens.seal(MAIL, NOW)
    expect(tokens.open(token, after(-60_000))).to.include({ kind: MAIL.kind })
    expect(tokens.open(token, after(8 * DAY_MS - 1))).to.include({ msLeft: 1 })
    expect(tokens.open(token, after(8 * DAY_MS))).to.equal(undefined)
  })

  it('opens none that was altered in any character, or written in another way', () => {
    const token = tokens.seal(MAIL, NOW)
    for (const [at, each] of [...token].entries())
      for (const other of ['A', 'B', '.', ''])
        if (other !== each) {
          const altered = token.slice(0, at) + other + token.slice(at + 1)
          if (altered !== token)
            expect(tokens.open(altered, NOW), `${at} ${other}`).to.equal(undefined)
        }
    for (const more of ['=', '.', ' ', 'A', '\n', '%'])
      for (const altered of [token + more, more + token])
        expect(tokens.open(altered, NOW)).to.equal(undefined)
  })

  it('opens nothing that was sealed for something else, with the same content', () => {
    const { kind, accountId, id, locale, email, passwordDigest } = MAIL
    const content = [kind, accountId, id, locale, NOW.getTime(), idOf(email), passwordDigest]
    for (const purpose of ['', 'smtp_password for mail.example', 'login that waits x'])
      expect(tokens.open(box.seal(JSON.stringify(content), purpose), NOW)).to.equal(undefined)
    for (const nothing of ['', '.', '....', 'x', 'null'])
      expect(tokens.open(nothing, NOW)).to.equal(undefined)
  })
})
