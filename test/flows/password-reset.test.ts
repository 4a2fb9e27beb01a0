import bcrypt from 'bcrypt'
import { expect } from 'chai'
import { createAuthorizeSig } from '../../src/crypto/authorize-sig.ts'
import { createKeyRing } from '../../src/crypto/keys.ts'
import { createLoginCodes } from '../../src/crypto/login-code.ts'
import { hashPassword, passwordDigest } from '../../src/crypto/password.ts'
import { hashToken, newId, newToken } from '../../src/crypto/token.ts'
import { createPasswordReset } from '../../src/flows/password-reset.ts'
import { memoryStore, memoryUsers, type AccountFlowsStore, type User } from '../../src/index.ts'
import { createSettingsKeeper } from '../../src/settings/settings.ts'
import { movableClock } from '../support/time.ts'

const used = { fault: 'used', carried: {}, locale: 'de' }
const requester = { address: '127.0.0.1', userAgent: 'tests' }

/** The flow on the stores in memory, with everything that it asks of the users and of bcrypt written down. */
async function watchedFlow(users: User[]) {
  const store = memoryStore()
  const calls: string[] = []
  const hashing = { fails: 0, error: new Error('no thread is left') }
  const watched = <T extends object>(what: string, port: T) =>
    new Proxy(port, {
      get(target, name, receiver) {
        calls.push(`${what}.${String(name)}`)
        return Reflect.get(target, name, receiver)
      },
    })
  const box = {
    seal: (text: string) => text,
    open: (text: string) => text,
    isCurrent: () => true,
  }
  const keeper = createSettingsKeeper(store.settings, box, () => {})
  const flow = createPasswordReset({
    ...store,
    readCutoffs: async () => undefined,
    passwordJudge: { isAsked: () => false, judge: async () => undefined },
    keyedHash: (text) => text,
    authorizeSig: createAuthorizeSig(createKeyRing([Buffer.alloc(32)])),
    loginCodes: createLoginCodes(createKeyRing([Buffer.alloc(32)])),
    users: watched('users', memoryUsers(users)),
    resetTokens: watched('tokens', store.resetTokens),
    outbox: {
      add(job) {
        calls.push('outbox.add')
        return store.outbox.add(job)
      },
    },
    sessions: watched('sessions', {
      endOAuthSessions: async () => 0,
      endIdpSessions: async () => 0,
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
  })
  await keeper.refresh()
  return { flow, calls, store, hashing }
}

describe('The flow of a password reset', () => {
  const user = {
    id: 'u1',
    username: 'alice',
    email: 'alice@users.example',
    emailVerified: true,
    passwordHash: bcrypt.hashSync('correct horse battery', 4),
    disabled: false,
  } satisfies User

  it('does the same one thing for every identifier, and looks nobody up (FLT-11)', async () => {
    const unverified = { ...user, id: 'u2', username: 'bob', email: 'bob@users.example' }
    const { flow, calls } = await watchedFlow([
      user,
      { ...unverified, emailVerified: false },
      { ...user, id: 'u3', username: 'gone', email: 'gone@users.example', disabled: true },
    ])
    for (const identifier of [
      'alice',
      'alice@users.example',
      'ALICE@users.example',
      'bob',
      'bob@users.example',
      'gone',
      'nobody',
      'nobody@users.example',
      'x'.repeat(60_000),
    ]) {
      await flow.request(identifier, {}, requester)
      expect(calls.splice(0), identifier.slice(0, 30)).to.deep.equal(['outbox.add'])
    }
  })

  it('hashes nothing for a token that cannot be used, and nothing for a refused form (PWD-08)', async () => {
    const { flow, calls, store } = await watchedFlow([user])
    const password = 'a new password'
    for (const token of [newToken(), '', 'x'.repeat(43), 'short', 'x'.repeat(60_000)]) {
      const form = { token, password, confirmPassword: password }
      expect(await flow.complete(form, requester)).to.deep.equal({ fault: 'unknown', carried: {} })
    }
    expect(calls.filter((call) => call === 'bcrypt')).to.deep.equal([])

    const token = await issuedTo(store)
    calls.splice(0)
    const refused = { token, password, confirmPassword: 'another password' }
    expect(await flow.complete(refused, requester)).to.deep.equal({
      refusal: 'password_mismatch',
      also: undefined,
      excess: 0,
      carried: {},
    })
    expect(calls).to.deep.equal(['tokens.find'])
  })

  it('opens a usable link at the cost of two reads, and consumes nothing', async () => {
    const { flow, calls, store } = await watchedFlow([user])
    const token = await issuedTo(store)
    for (let time = 0; time < 3; time += 1) {
      calls.splice(0)
      expect(await flow.open(token)).to.deep.equal({ carried: {}, locale: 'de' })
      expect(calls).to.deep.equal(['tokens.find', 'users.findById'])
    }
    calls.splice(0)
    for (const other of ['', 'short', 'x'.repeat(60_000)]) {
      expect(await flow.open(other)).to.deep.equal({ fault: 'unknown', carried: {} })
    }
    expect(calls).to.deep.equal([])
  })

  it('has its effects in the order of section 3.3, after the claim', async () => {
    const { flow, calls, store } = await watchedFlow([user])
    const token = await issuedTo(store)
    const password = 'a new password'
    const done = await flow.complete({ token, password, confirmPassword: password }, requester)
    expect(done).to.deep.include({ carried: {} })
    expect(calls).to.deep.equal([
      'tokens.find',
      'bcrypt',
      'tokens.claim',
      'users.findById',
      'users.replacePasswordHash',
      'tokens.advance',
      'sessions.endOAuthSessions',
      'sessions.endIdpSessions',
      'outbox.add',
      'password_reset_completed',
      'tokens.advance',
    ])
  })

  it('hashes one password of a token, however many are posted at once, and lets no other token wait (RATE-15)', async () => {
    const bob = { ...user, id: 'u2', username: 'bob' }
    const { flow, calls, store } = await watchedFlow([user, bob])
    const post = (token: string, password: string) =>
      flow.complete({ token, password, confirmPassword: password }, requester)
    const token = await issuedTo(store)
    const another = await issuedTo(store, bob)
    calls.splice(0)
    const posts = Array.from({ length: 60 }, (_none, index) => post(token, `new password ${index}`))
    const others = post(another, 'the password of bob')
    const [first, ...rest] = await Promise.all(posts)
    expect(first).to.deep.include({ carried: {} })
    expect(rest).to.deep.equal(rest.map(() => used))
    expect(await others).to.deep.include({ carried: {} })
    expect(calls.filter((call) => call === 'bcrypt')).to.have.length(2)
    expect(calls.indexOf('bcrypt', calls.indexOf('bcrypt') + 1)).to.be.below(
      calls.indexOf('tokens.claim'),
    )
  })

  it('goes on with the next form where the one before was refused, or its hashing failed (RATE-15)', async () => {
    const { flow, calls, store, hashing } = await watchedFlow([user])
    const token = await issuedTo(store)
    const post = (password: string, confirmPassword = password) =>
      flow.complete({ token, password, confirmPassword }, requester)
    hashing.fails = 1
    const [failed, refused, done, late] = await Promise.allSettled([
      post('a new password'),
      post('a new password', 'another password'),
      post('the right password'),
      post('a later password'),
    ])
    expect(failed).to.deep.equal({ status: 'rejected', reason: hashing.error })
    expect(refused).to.have.nested.property('value.refusal', 'password_mismatch')
    expect(done).to.have.deep.nested.property('value.carried', {})
    expect(late).to.have.deep.property('value', used)
    expect(calls.filter((call) => call === 'bcrypt')).to.have.length(2)
  })

  async function issuedTo(store: AccountFlowsStore, { id: userId } = user): Promise<string> {
    const token = newToken()
    await store.resetTokens.issue({
      id: newId(),
      tokenHash: hashToken(token),
      userId,
      email: user.email,
      passwordDigest: passwordDigest(user.passwordHash),
      carried: {},
      locale: 'de',
      mailJobId: 'job',
      attempt: 1,
      requestedAt: new Date(),
      createdAt: new Date(),
      expiresAt: new Date(Date.now() + 60_000),
    })
    return token
  }
})
