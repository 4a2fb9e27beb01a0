import { expect } from 'chai'
import { passwordDigest } from '../../src/crypto/password.ts'
import { endOf, linkState, type LinkRecord } from '../../src/flows/link.ts'
import type { User } from '../../src/index.ts'

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
const record: LinkRecord = {
  tokenHash: 'hash of the token',
  userId: account.id,
  email: account.email,
  passwordDigest: passwordDigest(account.passwordHash),
  carried: {},
  expiresAt: AFTER,
}

type Row = [what: string, record: Partial<LinkRecord>, account: Partial<User> | undefined]

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
        expect(endOf(stored, AT)).to.equal(end)
      })
    }
  }
})
