/** What is compared: how each of them stores its users, and how a person speaks to it. */
import { randomBytes, randomUUID } from 'node:crypto'
import bcrypt from 'bcrypt'
import { ObjectId } from 'mongodb'
import type { Answer, Client } from './client.ts'

export interface Person {
  username: string
  email: string
  isVerified: boolean
}

export interface Target {
  /** Its server, below `bench/`. */
  server: string
  /** What its database holds of these people, by collection. */
  documents(people: Person[]): Record<string, object[]>
  /** Each answers whether it worked. */
  forgot(client: Client, person: Person): Promise<boolean>
  reset(client: Client, link: string): Promise<boolean>
  /** Asks for a verification link. `undefined`: it has no such endpoint, and `linkOf` knows what was mailed at sign-up. */
  resend?(client: Client, person: Person): Promise<boolean>
  linkOf?(person: Person, base: string): string
  verify(client: Client, link: string): Promise<boolean>
}

const OLD = await bcrypt.hash('the password of before', 10)
const password = 'another password'
const tokenOf = (link: string) => new URL(link).searchParams.get('token') ?? ''
const isOk = async (answer: Promise<Answer>) => (await answer).status === 200

async function leadsOn(answer: Promise<Answer>, where: RegExp): Promise<boolean> {
  const { status, headers } = await answer
  return [302, 303].includes(status) && where.test(headers.location ?? '')
}

const floor: Target = {
  server: 'comparison/floor.mjs',
  documents: (people) => ({
    users: people.map(({ username, email, isVerified }) => ({
      username,
      email,
      emailVerified: isVerified,
      passwordHash: OLD,
    })),
  }),
  forgot: (client, { email }) => isOk(client.post('/forgot', { form: { identifier: email } })),
  reset: (client, link) =>
    isOk(
      client.post('/reset', {
        form: { token: tokenOf(link), password, confirm_password: password },
      }),
    ),
  resend: (client, { username }) => isOk(client.post('/resend', { form: { username } })),
  verify: (client, link) => leadsOn(client.get(link), /[?&]code=/),
}

const P = '/oauth2'
const REQUEST = new URLSearchParams({
  client_id: 'app',
  response_type: 'code',
  scope: 'openid',
  state: 'state',
  redirect_uri: 'https://app.example/cb',
})

function cookiesOf({ headers }: Answer): string {
  return (headers['set-cookie'] ?? []).map((cookie) => cookie.split(';', 1)[0]).join('; ')
}

/** `resend` is a login that is blocked, from the authorization request to the page, because its link is what finishes a login. */
const accountFlows: Target = {
  server: 'comparison/account-flows.mjs',
  documents: (people) => ({
    users: people.map(({ username, email, isVerified }) => ({
      _id: username,
      username,
      email,
      email_verified: isVerified,
      password_hash: OLD,
    })),
  }),
  forgot: (client, { email }) =>
    isOk(client.post(`${P}/forgot-password`, { form: { identifier: email } })),
  reset: (client, link) =>
    isOk(
      client.post(`${P}/reset-password`, {
        form: { token: tokenOf(link), password, confirm_password: password },
      }),
    ),
  async resend(client, { username }) {
    const begun = await client.get(`${P}/auth?${REQUEST}`)
    const headers = { cookie: cookiesOf(begun) }
    const login = begun.headers.location ?? ''
    await client.get(login, { headers })
    const { status, body } = await client.post(login, { form: { username }, headers })
    return status === 200 && body.includes('data-mode="blocked"')
  },
  verify: (client, link) => leadsOn(client.get(link), /[?&]code=/),
}

const betterAuth: Target = {
  server: 'peers/better-auth.mjs',
  documents(people) {
    const now = new Date()
    const stamps = { createdAt: now, updatedAt: now }
    const all = people.map((person) => ({ person, _id: new ObjectId() }))
    return {
      user: all.map(({ _id, person: { username, email, isVerified } }) => ({
        _id,
        name: username,
        email,
        emailVerified: isVerified,
        ...stamps,
      })),
      account: all.map(({ _id }) => ({
        accountId: String(_id),
        providerId: 'credential',
        userId: _id,
        password: 'none',
        ...stamps,
      })),
    }
  },
  forgot: (client, { email }) =>
    isOk(
      client.post('/api/auth/request-password-reset', { json: { email, redirectTo: '/reset' } }),
    ),
  reset: (client, link) => {
    const token = new URL(link).pathname.split('/').at(-1)
    return isOk(client.post('/api/auth/reset-password', { json: { newPassword: password, token } }))
  },
  resend: (client, { email }) =>
    isOk(client.post('/api/auth/send-verification-email', { json: { email, callbackURL: '/' } })),
  verify: (client, link) => leadsOn(client.get(link), /^(?!.*error=)/),
}

const headers = { 'x-parse-application-id': 'bench' }
const parseServer: Target = {
  server: 'peers/parse-server.mjs',
  documents(people) {
    const now = new Date()
    return {
      _User: people.map(({ username, email, isVerified }) => {
        const _id = randomUUID().replaceAll('-', '').slice(0, 16)
        return {
          _id,
          username,
          email,
          emailVerified: isVerified,
          _hashed_password: OLD,
          _wperm: [_id],
          _rperm: [_id],
          _acl: { [_id]: { w: true, r: true } },
          _created_at: now,
          _updated_at: now,
        }
      }),
    }
  },
  forgot: (client, { email }) =>
    isOk(client.post('/parse/requestPasswordReset', { json: { email }, headers })),
  async reset(client, link) {
    const form = { token: tokenOf(link), new_password: password }
    const { body } = await client.post('/parse/apps/bench/request_password_reset', { form })
    return body.includes('Your password has been updated')
  },
  resend: (client, { email }) =>
    isOk(client.post('/parse/verificationEmailRequest', { json: { email }, headers })),
  verify: async (client, link) => /email verified/i.test((await client.get(link)).body),
}

const payload: Target = {
  server: 'peers/payload.mjs',
  documents(people) {
    const now = new Date()
    return {
      users: people.map(({ username, email, isVerified }) => ({
        email,
        salt: randomBytes(32).toString('hex'),
        hash: 'none',
        _verified: isVerified,
        _verificationToken: isVerified ? null : username,
        loginAttempts: 0,
        sessions: [],
        createdAt: now,
        updatedAt: now,
      })),
    }
  },
  forgot: (client, { email }) =>
    isOk(client.post('/api/users/forgot-password', { json: { email } })),
  reset: (client, link) =>
    isOk(
      client.post('/api/users/reset-password', {
        json: { token: link.split('/').at(-1), password },
      }),
    ),
  linkOf: ({ username }, base) => `${base}/api/users/verify/${username}`,
  verify: (client, link) => isOk(client.post(link)),
}

/** The floor first: all others are told as multiples of it. */
export const targets: Record<string, Target> = {
  'floor-spec': floor,
  'account-flows': accountFlows,
  'better-auth': betterAuth,
  'parse-server': parseServer,
  payload,
}
