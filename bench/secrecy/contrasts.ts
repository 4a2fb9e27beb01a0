import { createHash, randomBytes, randomUUID } from 'node:crypto'
import type { Plan } from './measure.ts'
import { CHEAP_HASH, DEAR_HASH, type Person, type Service, type Setup } from './service.ts'
import { getRequest, postRequest, type WireRequest } from './wire.ts'

/** Two classes of requests that nobody may be able to tell apart. */
export interface Contrast {
  name: string
  setup: Setup
  connections: number
  /** Also part of the short form. */
  isShort?: boolean
  /** With `count` identifiers of each class. */
  plan(service: Service, count: number): Promise<Plan>
}

const NEAR: Setup = { delay: 'none', mail: 'taken', database: 'near', cap: 'none' }
const SHIPPED: Setup = { ...NEAR, delay: 'shipped' }
const CONNECTIONS = 20

const UNVERIFIED = { email_verified: false }
const DISABLED = { disabled: true }
const ADDRESSLESS = { email: undefined }

type Form = (service: Service, identifier: string) => WireRequest

const formOf =
  (path: string, field: string, more: Record<string, string> = {}): Form =>
  ({ oauthUrl }, identifier) => ({
    bytes: postRequest(new URL(path, oauthUrl), { [field]: identifier, ...more }),
  })

const forgot = formOf('forgot-password', 'identifier')
const resend = formOf('resend-verification', 'username')
const carried = { client_id: 'app', redirect_uri: 'https://evil.example/', state: 'x' }
const forgotElsewhere = formOf('forgot-password', 'identifier', carried)
const forgotSlowly: Form = (...args) => ({ ...forgot(...args), lastByteAfterMs: 400 })

const usernameOf = ({ username }: Person) => username
const emailOf = ({ email }: Person) => email

/** Accounts of one kind against nobody, asked for with this form. */
function against(
  form: Form,
  document: object,
  identifierOf: (person: Person) => string = usernameOf,
): Contrast['plan'] {
  return async (service, count) => {
    const path = form === resend ? 'resend-verification' : 'forgot-password'
    return {
      url: new URL(path, service.oauthUrl),
      hits: (await service.accounts(count, document)).map((p) => form(service, identifierOf(p))),
      misses: service.strangers(count).map((p) => form(service, identifierOf(p))),
      status: 200,
    }
  }
}

/** Nobody against nobody: what no test may take for a difference. */
export const nothing: Contrast['plan'] = async (service, count) => {
  const requests = () => service.strangers(count).map(({ username }) => forgot(service, username))
  const url = new URL('forgot-password', service.oauthUrl)
  return { url, hits: requests(), misses: requests(), status: 200 }
}

const named =
  (length: number): Contrast['plan'] =>
  async (service, count) => {
    const people = () =>
      service.strangers(count).map((person, i) => ({
        ...person,
        username:
          length === 1
            ? String.fromCodePoint(0x4e00 + taken + i)
            : person.username.repeat(30).slice(0, length - 5) + String(10_000 + i),
      }))
    const hits = people()
    taken += count
    const misses = people()
    taken += count
    await service.add(hits)
    const requests = (all: Person[]) => all.map(({ username }) => forgot(service, username))
    const url = new URL('forgot-password', service.oauthUrl)
    return { url, hits: requests(hits), misses: requests(misses), status: 200 }
  }
let taken = 0

const throttled: Contrast['plan'] = async (service, count) => {
  const plan = await against(forgot, {})(service, count)
  for (const { bytes } of plan.hits) {
    await fetch(plan.url, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: bytes.subarray(bytes.indexOf('\r\n\r\n') + 4).toString(),
    })
  }
  await service.rest()
  const tokens = service.db.collection('password_reset_tokens')
  const live = await tokens.countDocuments({ live_of: { $type: 'string' } })
  if (live < plan.hits.length) throw new Error('Not everybody beyond the cap has a link')
  return plan
}

function login(document: object, password = 'not the password'): Contrast['plan'] {
  return async (service, count) => {
    const url = new URL('login', service.oauthUrl)
    const { cookie, interaction } = await service.loginPage()
    const request = ({ username }: Person) => ({
      bytes: postRequest(url, { interaction, username, password }, cookie),
    })
    return {
      url,
      hits: (await service.accounts(count, document)).map(request),
      misses: service.strangers(count).map(request),
      status: 401,
    }
  }
}

/** A link whose first 42 characters are those of a live one, against one that is random (TIM-08). */
const almostTheLink: Contrast['plan'] = async (service, count) => {
  const url = new URL('reset-password', service.oauthUrl)
  const live = randomBytes(32).toString('base64url')
  const in1Hour = new Date(Date.now() + 3_600_000)
  await service.db.collection('password_reset_tokens').insertOne({
    token_hash: createHash('sha256').update(live).digest('hex'),
    user_id: randomUUID(),
    expires_at: in1Hour,
    used_at: null,
    invalidated_at: null,
  })
  const request = (token: string) => ({
    bytes: getRequest(new URL(`?token=${token}`, url)),
  })
  const letters = 'abcdefgh'.split('').filter((letter) => !live.endsWith(letter))
  return {
    url,
    hits: letters.map((letter) => request(live.slice(0, 42) + letter)),
    misses: Array.from({ length: count }, () => request(randomBytes(32).toString('base64url'))),
    status: 400,
  }
}

const one = (name: string, plan: Contrast['plan'], more: Partial<Contrast> = {}): Contrast => ({
  name,
  plan,
  setup: NEAR,
  connections: 1,
  ...more,
})
const shipped = { setup: SHIPPED, connections: CONNECTIONS }

export const contrasts: Contrast[] = [
  one('forgot: username', against(forgot, {}), { isShort: true }),
  one('forgot: verified address', against(forgot, {}, emailOf), { isShort: true }),
  one('forgot: unverified address', against(forgot, UNVERIFIED, emailOf)),
  one('forgot: disabled', against(forgot, DISABLED)),
  one('forgot: no address', against(forgot, ADDRESSLESS)),
  one('forgot: foreign redirect_uri', against(forgotElsewhere, {})),
  one('forgot: 1 character', named(1)),
  one('forgot: 64 characters', named(64)),
  one('forgot: 254 characters', named(254)),
  one('forgot: 300 characters', named(300)),
  one('forgot: last byte late', against(forgotSlowly, {}), { connections: CONNECTIONS }),
  one('resend: unverified', against(resend, UNVERIFIED), { isShort: true }),
  one('resend: verified', against(resend, {})),
  one('resend: disabled', against(resend, DISABLED)),
  one('reset link: 42 characters right', almostTheLink),
  one('login: verified', login({}), { isShort: true }),
  one('login: unverified', login(UNVERIFIED)),
  one('login: disabled', login(DISABLED)),
  one('login: no password', login({ password_hash: undefined })),
  one('login: hash of lower cost', login({ password_hash: CHEAP_HASH }), { isShort: true }),
  one('login: hash of higher cost', login({ password_hash: DEAR_HASH })),
  one('login: password of 73 bytes', login({}, 'x'.repeat(73))),
  one('forgot: beyond the cap', throttled, { setup: { ...NEAR, cap: 'one' } }),
  one('forgot: username', against(forgot, {}), { setup: { ...NEAR, mail: 'unreachable' } }),
  one('forgot: username', against(forgot, {}), { setup: { ...NEAR, mail: 'refused' } }),
  one('forgot: username', against(forgot, {}), { setup: { ...NEAR, mail: 'silent' } }),
  one('forgot: username', against(forgot, {}), {
    setup: { ...NEAR, database: 'far' },
    connections: CONNECTIONS,
  }),
  one('forgot: username', against(forgot, {}), shipped),
  one('forgot: verified address', against(forgot, {}, emailOf), shipped),
  one('forgot: last byte late', against(forgotSlowly, {}), shipped),
  one('resend: unverified', against(resend, UNVERIFIED), shipped),
]

/** What is asked for by section B, and what comes after it. */
export const followed = {
  setup: NEAR,
  plan: against(forgot, {}),
  lagsMs: [0, 10, 50, 200, 1_000],
  followers: {
    probe: undefined,
    successor: (service: Service, count: number) =>
      service.strangers(count).map(({ username }) => forgot(service, username)),
  },
}

export const controls = {
  none: { setup: NEAR, connections: 1, holdHitsMs: 3 },
  shipped: { setup: SHIPPED, connections: CONNECTIONS, holdHitsMs: 30 },
}

/** How the contrast is called beside others of the same name. */
export function titleOf({ name, setup }: Pick<Contrast, 'name' | 'setup'>): string {
  return [
    name,
    ...(setup.mail === 'taken' ? [] : [`mail ${setup.mail}`]),
    ...(setup.database === 'near' ? [] : ['MongoDB 100 ms away']),
    ...(setup.delay === 'none' ? [] : ['shipped delay']),
  ].join(', ')
}
