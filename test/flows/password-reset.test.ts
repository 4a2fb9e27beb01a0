import bcrypt from 'bcrypt'
import { expect } from 'chai'
import { issuedAs, sampleResetToken } from '../records/contract/samples.ts'
import { createAuthorizeSig } from '../../src/crypto/authorize-sig.ts'
import { createKeyRing } from '../../src/crypto/keys.ts'
import { createLoginCodes } from '../../src/crypto/login-code.ts'
import { hashPassword, passwordDigest } from '../../src/crypto/password.ts'
import { hashToken, newToken } from '../../src/crypto/token.ts'
import { hasUsableLink, linkState } from '../../src/flows/link.ts'
import { createPasswordReset } from '../../src/flows/password-reset.ts'
import { memoryUsers, type User } from '../../src/index.ts'
import { endOf } from '../../src/ports/token-end.ts'
import type { Token } from '../../src/records/index.ts'
import { createSettingsKeeper } from '../../src/settings/settings.ts'
import { movableClock } from '../support/time.ts'
import { keptInMemory } from '../support/kept.ts'

const ann = {
  id: 'ann',
  username: 'ann',
  email: 'ann@users.example',
  emailVerified: true,
  passwordHash: bcrypt.hashSync('correct horse battery', 4),
  disabled: false,
} satisfies User

describe('The state of a link', () => {
  const AT = new Date(1_000_000)
  const BEFORE = new Date(AT.getTime() - 1)
  const AFTER = new Date(AT.getTime() + 1)
  const record: Token = {
    ...issuedAs(sampleResetToken()),
    userId: ann.id,
    email: ann.email,
    passwordDigest: passwordDigest(ann.passwordHash),
    expiresAt: AFTER,
  }

  type Row = [what: string, record: Partial<Token>, account: Partial<User> | undefined]

  /** By how a link stands, and what ended it for the audit log. */
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
  for (const [expected, rows] of Object.entries(ROWS)) {
    for (const [what, changes, changed] of rows) {
      const [state, end] = expected.split(' ')
      it(`is ${state} where ${what}`, () => {
        const stored = { ...record, ...changes }
        expect(linkState(stored, changed && { ...ann, ...changed }, AT)).to.equal(state)
        expect(endOf(stored, AT) ?? 'account_changed').to.equal(end)
      })
    }
  }

  describe('that an account has to use', () => {
    const hasUsable = (tokens: Token[], changes: Partial<User> = {}, login?: string) =>
      hasUsableLink(
        { find: async () => undefined, ofUser: async () => tokens },
        { ...ann, ...changes },
        AT,
        login,
      )
    const expired = { ...record, expiresAt: AT }

    it('is usable, among others that are not, and issued for the account as it is; is, where a login waits, a link that finishes that one', async () => {
      expect(await hasUsable([])).to.equal(false)
      expect(await hasUsable([expired, { ...record, claimedAt: BEFORE }])).to.equal(false)
      expect(await hasUsable([{ ...record, invalidatedAt: BEFORE }])).to.equal(false)
      expect(await hasUsable([expired, record])).to.equal(true)
      expect(await hasUsable([record], { email: 'ANN@users.example' })).to.equal(false)
      expect(await hasUsable([record], { passwordHash: 'another hash' })).to.equal(false)
      const own = { ...record, pendingLoginId: 'a login' }
      const other = { ...record, pendingLoginId: 'another' }
      expect(await hasUsable([record, other], {}, 'a login')).to.equal(false)
      expect(await hasUsable([other, { ...own, usedAt: BEFORE }], {}, 'a login')).to.equal(false)
      expect(await hasUsable([record, own], {}, 'a login')).to.equal(true)
    })
  })
})

const used = { fault: 'used', carried: {}, locale: 'de' }
const requester = { address: '127.0.0.1', userAgent: 'tests' }

/** The flow on the stores in memory, with everything that it asks of the users and of bcrypt written down. */
async function watchedFlow(users: User[]) {
  const store = keptInMemory()
  const calls: string[] = []
  const hashing = { fails: 0, error: new Error('no thread is left') }
  const outbox = { isGone: false }
  const watched = <T extends object>(what: string, port: T) =>
    new Proxy(port, {
      get(target, name, receiver) {
        calls.push(`${what}.${String(name)}`)
        return Reflect.get(target, name, receiver)
      },
    })
  const same = (text: string) => text
  const box = { seal: same, open: same, isCurrent: () => true }
  const keys = createKeyRing([Buffer.alloc(32)])
  const keeper = createSettingsKeeper(store.settings, box, () => {})
  const flow = createPasswordReset({
    ...store,
    readCutoffs: async () => undefined,
    passwordJudge: { isAsked: () => false, judge: async () => undefined },
    keyedHash: same,
    authorizeSig: createAuthorizeSig(keys),
    loginCodes: createLoginCodes(keys),
    users: watched('users', memoryUsers(users)),
    resetTokens: watched('tokens', store.resetTokens),
    outbox: {
      add(job) {
        calls.push('outbox.add')
        if (outbox.isGone) throw new Error('the outbox is gone')
        return store.outbox.add(job)
      },
    },
    sessions: watched('sessions', {
      end: async () => ({ oauth: 0, idp: 0 }),
    }),
    async hashPassword(password) {
      calls.push('bcrypt')
      hashing.fails -= 1
      if (hashing.fails >= 0) throw hashing.error
      return hashPassword(password, 4)
    },
    audit: async ({ type }) => void calls.push(type),
    settings: keeper.current,
    clock: movableClock,
    log: () => {},
  })
  await keeper.refresh()

  return {
    flow,
    calls,
    hashing,
    outbox,

    /** Of a link that the user could open by now; what that took is not among the calls. */
    async issuedTo({ id: userId, email = '' }: User): Promise<string> {
      const token = newToken()
      const account = { userId, email, passwordDigest: passwordDigest(ann.passwordHash) }
      const link = { tokenHash: hashToken(token), expiresAt: new Date(Date.now() + 60_000) }
      const asked = { carried: {}, locale: 'de' }
      await store.resetTokens.issue(sampleResetToken({ ...account, ...link, ...asked }))
      calls.length = 0
      return token
    },

    post: (token: string, password = 'a new password', confirmPassword = password) =>
      flow.complete({ token, password, confirmPassword }, requester),
  }
}

describe('The flow of a password reset', () => {
  it('does the same one thing for every identifier, and looks nobody up (FLT-11)', async () => {
    const unverified = { ...ann, id: 'u2', username: 'bob', email: 'bob@users.example' }
    const { flow, calls } = await watchedFlow([
      ann,
      { ...unverified, emailVerified: false },
      { ...ann, id: 'u3', username: 'gone', email: 'gone@users.example', disabled: true },
    ])
    const known = ['ann', 'ann@users.example', 'ANN@users.example', 'bob', 'bob@users.example']
    const others = ['gone', 'nobody', 'nobody@users.example', 'x'.repeat(60_000)]
    for (const identifier of [...known, ...others]) {
      await flow.request(identifier, {}, requester)
      expect(calls.splice(0), identifier.slice(0, 30)).to.deep.equal(['outbox.add'])
    }
  })

  it('opens at the cost of two reads, and has its effects in the order of section 3.3, after the claim', async () => {
    const { flow, calls, issuedTo, post } = await watchedFlow([ann])
    const token = await issuedTo(ann)
    expect(await flow.open(token)).to.deep.equal({ carried: {}, locale: 'de' })
    expect(calls.splice(0)).to.deep.equal(['tokens.find', 'users.findById'])
    for (const other of ['', 'short', 'x'.repeat(60_000)])
      expect(await flow.open(other)).to.deep.equal({ fault: 'unknown', carried: {} })
    expect(calls).to.deep.equal([])
    expect(await post(token)).to.deep.include({ carried: {} })
    expect(calls).to.deep.equal([
      'tokens.find',
      'bcrypt',
      'tokens.claim',
      'users.findById',
      'users.replacePasswordHash',
      'tokens.advance',
      'sessions.end',
      'outbox.add',
      'password_reset_completed',
      'tokens.advance',
    ])
  })

  it('records no event before the owner is sure to be told', async () => {
    const { calls, outbox, issuedTo, post } = await watchedFlow([ann])
    const token = await issuedTo(ann)
    outbox.isGone = true
    const failed: unknown = await post(token).catch((error: unknown) => error)
    expect(String(failed)).to.include('the outbox is gone')
    expect(calls.at(-1)).to.equal('outbox.add')
    const another = await issuedTo({ ...ann, id: 'nobody' })
    outbox.isGone = false
    expect(await post(another)).to.deep.include({ fault: 'changed' })
  })

  it('hashes one password of a token, however many are posted at once, and lets no other token wait (RATE-15)', async () => {
    const bob = { ...ann, id: 'u2', username: 'bob' }
    const { calls, issuedTo, post } = await watchedFlow([ann, bob])
    const [token, another] = [await issuedTo(ann), await issuedTo(bob)]
    const posts = Array.from({ length: 60 }, (_none, index) => post(token, `new password ${index}`))
    const others = post(another, 'the password of bob')
    const [first, ...rest] = await Promise.all(posts)
    expect(first).to.deep.include({ carried: {} })
    expect(rest).to.deep.equal(rest.map(() => used))
    expect(await others).to.deep.include({ carried: {} })
    const steps = calls.filter((call) => /^(bcrypt|tokens\.claim)$/.test(call))
    expect(steps).to.deep.equal(['bcrypt', 'bcrypt', 'tokens.claim', 'tokens.claim'])
  })

  it('goes on with the next form where the one before was refused, or its hashing failed (RATE-15)', async () => {
    const { calls, hashing, issuedTo, post } = await watchedFlow([ann])
    const token = await issuedTo(ann)
    hashing.fails = 1
    const [failed, refused, done, late] = await Promise.allSettled([
      post(token),
      post(token, 'a new password', 'another password'),
      post(token, 'the right password'),
      post(token, 'a later password'),
    ])
    expect(failed).to.deep.equal({ status: 'rejected', reason: hashing.error })
    expect(refused).to.have.nested.property('value.refusal', 'password_mismatch')
    expect(done).to.have.deep.nested.property('value.carried', {})
    expect(late).to.have.deep.property('value', used)
    expect(calls.filter((call) => call === 'bcrypt')).to.have.length(2)
  })
})
