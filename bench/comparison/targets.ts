/** What is compared: how each stores its users, and how a person asks it. */
import { randomBytes, randomUUID } from 'node:crypto'
import { ObjectId } from 'mongodb'
import { example, OLD_HASH, other, type Person, type Start } from './services.ts'

/** One request: a POST where it has a form or JSON. */
export interface Ask {
  path: string
  form?: Record<string, string>
  json?: object
  headers?: Record<string, string>
  /** Whether it did what was asked. By default: the status is 200. */
  worked?(answer: Response, body: string): boolean
}

export interface Target {
  start: Start
  /** Asks for a link by address, and for a verification link by name. `undefined`: it mails one at sign-up alone. */
  forgot(person: Person): Ask
  resend?(person: Person): Ask
  reset(link: string): Ask
  verify(link: string, person: Person): Ask
}

const password = 'another password'
const tokenOf = (link: string) => new URL(link).searchParams.get('token') ?? ''
const formOf = (link: string) => ({ token: tokenOf(link), password, confirm_password: password })

const leadsTo = (where: RegExp) => (answer: Response) =>
  [302, 303].includes(answer.status) && where.test(answer.headers.get('location') ?? '')

const floor: Target = {
  start: other('comparison/floor.mjs', (people) => ({
    users: people.map(({ username, email, isVerified }) => {
      return { username, email, emailVerified: isVerified, passwordHash: OLD_HASH }
    }),
  })),
  forgot: ({ email }) => ({ path: '/forgot', form: { identifier: email } }),
  resend: ({ username }) => ({ path: '/resend', form: { username } }),
  reset: (link) => ({ path: '/reset', form: formOf(link) }),
  verify: (link) => ({ path: link, worked: leadsTo(/[?&]code=/) }),
}

let networks = 0

/** Behind a proxy, each from a network of its own: of one network, few resets wait. */
function ours(path: string, form?: Record<string, string>): Ask {
  networks = (networks + 1) % 0x10000
  const headers = { 'x-forwarded-for': `2001:db8:${networks.toString(16)}::1` }
  return { path, headers, ...(form && { form }) }
}

const accountFlows: Omit<Target, 'start'> = {
  forgot: ({ email }) => ours('/oauth2/forgot-password', { identifier: email }),
  resend: ({ username }) => ours('/oauth2/resend-verification', { username }),
  reset: (link) => ours('/oauth2/reset-password', formOf(link)),
  verify: (link) => ours(link),
}

const stamps = { createdAt: new Date(), updatedAt: new Date() }

const betterAuth: Target = {
  start: other('peers/better-auth.mjs', (people) => {
    const all = people.map((person) => ({ person, _id: new ObjectId() }))
    return {
      user: all.map(({ _id, person: { username, email, isVerified } }) => {
        return { _id, name: username, email, emailVerified: isVerified, ...stamps }
      }),
      account: all.map(({ _id }) => {
        const login = { accountId: String(_id), providerId: 'credential', password: 'none' }
        return { ...login, userId: _id, ...stamps }
      }),
    }
  }),
  forgot: ({ email }) => ({
    path: '/api/auth/request-password-reset',
    json: { email, redirectTo: '/reset' },
  }),
  resend: ({ email }) => ({
    path: '/api/auth/send-verification-email',
    json: { email, callbackURL: '/' },
  }),
  reset: (link) => ({
    path: '/api/auth/reset-password',
    json: { newPassword: password, token: new URL(link).pathname.split('/').at(-1) },
  }),
  verify: (link) => ({ path: link, worked: leadsTo(/^(?!.*error=)/) }),
}

const headers = { 'x-parse-application-id': 'bench' }

const parseServer: Target = {
  start: other('peers/parse-server.mjs', (people) => ({
    _User: people.map(({ username, email, isVerified }) => {
      const _id = randomUUID().replaceAll('-', '').slice(0, 16)
      const rights = { _wperm: [_id], _rperm: [_id], _acl: { [_id]: { w: true, r: true } } }
      const times = { _created_at: new Date(), _updated_at: new Date() }
      const user = { username, email, emailVerified: isVerified, _hashed_password: OLD_HASH }
      return { _id, ...user, ...rights, ...times }
    }),
  })),
  forgot: ({ email }) => ({ path: '/parse/requestPasswordReset', json: { email }, headers }),
  resend: ({ email }) => ({ path: '/parse/verificationEmailRequest', json: { email }, headers }),
  reset: (link) => ({
    path: '/parse/apps/bench/request_password_reset',
    form: { token: tokenOf(link), new_password: password },
    worked: (_, body) => body.includes('Your password has been updated'),
  }),
  verify: (link) => ({ path: link, worked: (_, body) => /email verified/i.test(body) }),
}

const payload: Target = {
  start: other('peers/payload.mjs', (people) => ({
    users: people.map(({ username, email, isVerified }) => ({
      email,
      salt: randomBytes(32).toString('hex'),
      hash: 'none',
      _verified: isVerified,
      _verificationToken: isVerified ? null : username,
      loginAttempts: 0,
      sessions: [],
      ...stamps,
    })),
  })),
  forgot: ({ email }) => ({ path: '/api/users/forgot-password', json: { email } }),
  reset: (link) => ({
    path: '/api/users/reset-password',
    json: { token: link.split('/').at(-1), password },
  }),
  verify: (_, { username }) => ({ path: `/api/users/verify/${username}`, json: {} }),
}

/** The floor first: all others are told as multiples of it. Those that are named after a store are this package. */
export const targets: Record<string, Target> = {
  floor,
  memory: { ...accountFlows, start: example('memory') },
  mongodb: { ...accountFlows, start: example('mongodb') },
  postgresql: { ...accountFlows, start: example('postgresql') },
  'better-auth': betterAuth,
  'parse-server': parseServer,
  payload,
}

/** They are installed for the bench alone. */
export const PEERS = ['better-auth', 'parse-server', 'payload']
