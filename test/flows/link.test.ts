import { expect } from 'chai'
import { passwordDigest } from '../../src/crypto/password.ts'
import { issuedAs, sampleResetToken } from '../../src/contract/samples.ts'
import { hasUsableLink, linkState } from '../../src/flows/link.ts'
import type { Token, User } from '../../src/index.ts'
import { endOf } from '../../src/ports/token-end.ts'

const AT = new Date(1_000_000)
const BEFORE = new Date(AT.getTime() - 1)
const AFTER = new Date(AT.getTime() + 1)

const account: User = {
  id: 'ann',
  username: 'ann',
  email: 'ann@users.example',
  emailVerified: true,
  passwordHash: 'a hash',
  disabled: false,
}
const record: Token = {
  ...issuedAs(sampleResetToken()),
  userId: account.id,
  email: 'ann@users.example',
  passwordDigest: passwordDigest(account.passwordHash),
  expiresAt: AFTER,
}

type Row = [what: string, record: Partial<Token>, account: Partial<User> | undefined]

const ROWS: Record<string, Row[]> = {
  'usable account_changed': [['nothing happened', {}, {}]],
  'expired expired': [
    ['its time is over', { expiresAt: BEFORE }, {}],
    ['its time ends now', { expiresAt: AT }, {}],
  ],
  'used used': [
    ['it was used', { usedAt: BEFORE }, {}],
    ['its reset is decided', { claimedAt: BEFORE }, {}],
    ['it was used, and its account is gone', { usedAt: BEFORE }, undefined],
    ['it was used, and its time is over', { usedAt: BEFORE, expiresAt: BEFORE }, {}],
  ],
  'superseded invalidated': [['a newer one took its place', { invalidatedAt: BEFORE }, {}]],
  'changed invalidated': [
    ['its reset was refused in the end', { claimedAt: BEFORE, invalidatedAt: BEFORE }, {}],
  ],
  'changed account_changed': [
    ['its account is gone', {}, undefined],
    ['its account is disabled', {}, { disabled: true }],
    ['its account has another address', {}, { email: 'eve@users.example' }],
    ['its account has another password', {}, { passwordHash: 'another hash' }],
  ],
  'changed expired': [
    ['its time is over, and the address is another one', { expiresAt: AT }, { email: 'e@x.org' }],
  ],
}

describe('The state of a link', () => {
  for (const [expected, rows] of Object.entries(ROWS)) {
    for (const [what, changes, changed] of rows) {
      const [state, end] = expected.split(' ')
      it(`is ${state} where ${what}`, () => {
        const stored = { ...record, ...changes }
        expect(linkState(stored, changed && { ...account, ...changed }, AT)).to.equal(state)
        expect(endOf(stored, AT) ?? 'account_changed').to.equal(end)
      })
    }
  }
})

describe('What an account has to use', () => {
  const hasUsable = (tokens: Token[], changes: Partial<User> = {}, login?: string) =>
    hasUsableLink(
      { find: async () => undefined, ofUser: async () => tokens },
      { ...account, ...changes },
      AT,
      login,
    )
  const expired = { ...record, expiresAt: AT }

  it('is a link that does its work, among others that do not', async () => {
    expect(await hasUsable([])).to.equal(false)
    expect(await hasUsable([expired, { ...record, claimedAt: BEFORE }])).to.equal(false)
    expect(await hasUsable([{ ...record, invalidatedAt: BEFORE }])).to.equal(false)
    expect(await hasUsable([expired, record])).to.equal(true)
  })

  it('is no link that was issued for the account as it was', async () => {
    for (const changes of [{ email: 'ANN@users.example' }, { passwordHash: 'another hash' }]) {
      expect(await hasUsable([record], changes)).to.equal(false)
    }
  })

  it('is, where a login waits, a link that finishes that one', async () => {
    const [own, other] = ['a login', 'another'].map((pendingLoginId) => ({
      ...record,
      pendingLoginId,
    }))
    if (!own || !other) throw new TypeError()
    expect(await hasUsable([record, other], {}, 'a login')).to.equal(false)
    expect(await hasUsable([other, { ...own, usedAt: BEFORE }], {}, 'a login')).to.equal(false)
    expect(await hasUsable([record, own], {}, 'a login')).to.equal(true)
  })
})
