import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { measureAnswers, measureFollowers, type How, type Plan } from './measure.ts'
import { CHEAP_HASH, DEAR_HASH, type Person, type Service, type Setup } from './service.ts'
import type { Pairs } from './statistics.ts'
import { getRequest, postRequest, type WireRequest } from './wire.ts'

/** Measures classes of requests that no test may be able to tell apart. Answers them by what comes behind the name of the contrast. */
type Contrast = (service: Service, how: How) => Promise<Record<string, Pairs>>

/** With `count` identifiers of each class. */
type Planned = (service: Service, count: number) => Promise<Plan> | Plan

const UNVERIFIED = { email_verified: false }
const DISABLED = { disabled: true }

/** A form of the service, as a person fills it in. */
interface Form {
  path: string
  fields(person: Person): Record<string, string>
  cookie?: string
  lastByteAfterMs?: number
  /** Of the answer; 200 by default. */
  status?: number
}

export const forgot: Form = {
  path: 'forgot-password',
  fields: ({ username }) => ({ identifier: username }),
}
const forgotByAddress: Form = { ...forgot, fields: ({ email }) => ({ identifier: email }) }
const forgotSlowly: Form = { ...forgot, lastByteAfterMs: 400 }
const parameters = { client_id: 'app', redirect_uri: 'https://evil.example/', state: 'x' }
const forgotElsewhere: Form = {
  ...forgot,
  fields: ({ username }) => ({ identifier: username, ...parameters }),
}
export const resend: Form = {
  path: 'resend-verification',
  fields: ({ username }) => ({ username }),
}

/** The form, filled in for both classes. */
export function planFor(
  { oauthUrl }: Pick<Service, 'oauthUrl'>,
  { path, fields, cookie, lastByteAfterMs, status = 200 }: Form,
  hits: Person[],
  misses: Person[],
): Plan {
  const url = new URL(path, oauthUrl)
  const requests = (people: Person[]): WireRequest[] =>
    people.map((person) => ({ bytes: postRequest(url, fields(person), cookie), lastByteAfterMs }))
  return { url, hits: requests(hits), misses: requests(misses), status }
}

/** Nobody against nobody: what no test may take for a difference. */
export function nothing(service: Service, count: number): Plan {
  return planFor(service, forgot, service.strangers(count), service.strangers(count))
}

/** Accounts of one kind against nobody. */
function against(form: Form, document: object = {}): Planned {
  return async (service, count) => {
    const accounts = await service.accounts(count, document)
    return planFor(service, form, accounts, service.strangers(count))
  }
}

function named(length: number): Planned {
  return async (service, count) => {
    const people = () =>
      service.strangers(count).map((person) => {
        taken += 1
        const unlike = person.username.repeat(30).slice(0, length - 6) + String(100_000 + taken)
        return { ...person, username: length === 1 ? String.fromCodePoint(0x4e00 + taken) : unlike }
      })
    const accounts = people()
    await service.add(accounts)
    return planFor(service, forgot, accounts, people())
  }
}
let taken = 0

const throttled: Planned = async (service, count) => {
  const accounts = await service.accounts(count)
  const plan = planFor(service, forgot, accounts, service.strangers(count))
  for (const person of accounts)
    await fetch(plan.url, { method: 'POST', body: new URLSearchParams(forgot.fields(person)) })
  await service.rest()
  const tokens = service.db.collection('password_reset_tokens')
  const live = await tokens.countDocuments({ live_of: { $type: 'string' } })
  if (live < plan.hits.length) throw new Error('Not everybody beyond the cap has a link')
  return plan
}

function login(document: object, password = 'not the password'): Planned {
  return async (service, count) => {
    const { cookie, interaction } = await service.loginPage()
    const fields = ({ username }: Person) => ({ interaction, username, password })
    return against({ path: 'login', fields, cookie, status: 401 }, document)(service, count)
  }
}

/** A link whose first 42 characters are those of a live one, against one that is random (TIM-08). */
const almostTheLink: Planned = async ({ oauthUrl, db }, count) => {
  const url = new URL('reset-password', oauthUrl)
  const live = randomBytes(32).toString('base64url')
  await db.collection('password_reset_tokens').insertOne({
    token_hash: createHash('sha256').update(live).digest('hex'),
    user_id: randomUUID(),
    expires_at: new Date(Date.now() + 3_600_000),
    used_at: null,
    invalidated_at: null,
  })
  const request = (token: string) => ({ bytes: getRequest(new URL(`?token=${token}`, url)) })
  const letters = 'abcdefgh'.split('').filter((letter) => !live.endsWith(letter))
  return {
    url,
    hits: letters.map((letter) => request(live.slice(0, 42) + letter)),
    misses: Array.from({ length: count }, () => request(randomBytes(32).toString('base64url'))),
    status: 400,
  }
}

const of =
  (planned: Planned): Contrast =>
  async (service, how) => {
    const plan = await planned(service, how.identifiers)
    return { '': await measureAnswers(plan, how) }
  }

const LAGS_MS = [0, 10, 50, 200, 1_000]

/** What is asked for after a forgot-password. */
const after =
  (requestsOf: (service: Service, plan: Plan) => WireRequest[]): Contrast =>
  async (service, how) => {
    const plan = await against(forgot)(service, how.identifiers)
    const requests = requestsOf(service, plan)
    const measured = await measureFollowers(plan, how, { lagsMs: LAGS_MS, requests })
    return Object.fromEntries(measured.map((pairs, i) => [` after ${LAGS_MS[i]} ms`, pairs]))
  }

const byUsername = { 'forgot: username': of(against(forgot)) }
const byAddress = { 'forgot: verified address': of(against(forgotByAddress)) }
const lastByteLate = { 'forgot: last byte late': of(against(forgotSlowly)) }
const resendUnverified = { 'resend: unverified': of(against(resend, UNVERIFIED)) }

/** A server, and what is measured on it. */
interface Server {
  setup: Setup
  /** Behind the names of its contrasts. */
  suffix?: string
  connections: number
  /** What its positive control holds back. `undefined`: it has no controls. */
  holdHitsMs?: number
  contrasts: Record<string, Contrast>
}

export const servers: Server[] = [
  {
    setup: {},
    connections: 1,
    holdHitsMs: 3,
    contrasts: {
      ...byUsername,
      ...byAddress,
      'forgot: unverified address': of(against(forgotByAddress, UNVERIFIED)),
      'forgot: disabled': of(against(forgot, DISABLED)),
      'forgot: no address': of(against(forgot, { email: undefined })),
      'forgot: foreign redirect_uri': of(against(forgotElsewhere)),
      'forgot: 1 character': of(named(1)),
      'forgot: 64 characters': of(named(64)),
      'forgot: 254 characters': of(named(254)),
      'forgot: 300 characters': of(named(300)),
      ...resendUnverified,
      'resend: verified': of(against(resend)),
      'resend: disabled': of(against(resend, DISABLED)),
      'reset link: 42 characters right': of(almostTheLink),
      'login: verified': of(login({})),
      'login: unverified': of(login(UNVERIFIED)),
      'login: disabled': of(login(DISABLED)),
      'login: no password': of(login({ password_hash: undefined })),
      'login: hash of lower cost': of(login({ password_hash: CHEAP_HASH })),
      'login: hash of higher cost': of(login({ password_hash: DEAR_HASH })),
      'login: password of 73 bytes': of(login({}, 'x'.repeat(73))),
      'forgot, then probe': after((_, { url }) => [{ bytes: getRequest(url) }]),
      'forgot, then successor': after((service, { hits }) => nothing(service, hits.length).hits),
    },
  },
  { setup: {}, connections: 20, contrasts: lastByteLate },
  {
    setup: { isCapped: true },
    connections: 1,
    contrasts: { 'forgot: beyond the cap': of(throttled) },
  },
  ...(['unreachable', 'refused', 'silent'] as const).map((mail) => ({
    setup: { mail },
    suffix: `, mail ${mail}`,
    connections: 1,
    contrasts: byUsername,
  })),
  {
    setup: { isFar: true },
    suffix: ', MongoDB 100 ms away',
    connections: 20,
    contrasts: byUsername,
  },
  {
    setup: { isDelayed: true },
    suffix: ', shipped delay',
    connections: 20,
    holdHitsMs: 30,
    contrasts: { ...byUsername, ...byAddress, ...lastByteLate, ...resendUnverified },
  },
]

/** The short form, on the first server. */
export const SHORT = [
  ...Object.keys({ ...byUsername, ...byAddress, ...resendUnverified }),
  'login: verified',
  'login: hash of lower cost',
]
