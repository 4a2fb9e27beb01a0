/** What all operations share: their shape, their parts, their input, and how they refuse. */
import * as z from 'zod'
import { within, type Clock } from '../clock.ts'
import type { Requester } from '../contract/index.ts'
import { AccountFlowsError } from '../errors.ts'
import type { Flows } from '../flows/flows.ts'
import type { CommonParts, FlowParts } from '../flows/parts.ts'
import type { CheckMail } from '../mail/sending.ts'
import type { CheckedOptions } from '../options.ts'
import type { SettingsKeeper } from '../settings/settings.ts'
import type { Views } from '../views/index.ts'
import type { AdminScope } from './options.ts'
import { object, optional, text } from './schema.ts'

export interface AdminParts extends CommonParts, Pick<FlowParts, 'store' | 'users' | 'keyed'> {
  options: CheckedOptions
  settingsKeeper: SettingsKeeper
  flows: Pick<Flows, 'forHosts' | 'invite' | 'requestMail' | 'clientsOf'>
  mail: {
    /** Whether mails can be sent at all. */
    canSend(): boolean
    check: CheckMail
    views: Views
  }
  processes: {
    /** The key ids of each. */
    keyRings(): Promise<string[][]>
    /** The highest cost of a stored hash that this one compared, if its time shows it. `undefined`: there is none. */
    dearestCost(): number | undefined
  }
}

export interface AdminRequest<Query = {}, Body = undefined> {
  /** The admin whose token it is. */
  actor: string
  requester: Requester
  /** The query, with its defaults. */
  query: Query
  body: Body
  /** ETags of `If-Match`; `undefined`: there is no such header. */
  ifMatch: string[] | undefined
  /** Gives the answer this ETag. */
  tag(etag: string): void
  /** Records what is about to be done, and which admin does it. */
  record(
    action: string,
    about?: { accountId?: string | undefined; details?: Record<string, string | string[]> },
  ): Promise<void>
}

export type SettingProblem = z.infer<typeof SettingProblem>
export const SettingProblem = object('One thing wrong with a request to change settings.', {
  key: text,
  expected: text.describe('What a value must be.'),
  got: text.describe('What was sent; never the value of a secret, or of an unknown setting.'),
})

export type Candidate = z.infer<typeof Candidate>
export const Candidate = object('One of several accounts that match.', {
  id: text,
  username: text,
})

export type Problem = z.infer<typeof Problem>
export const Problem = object('RFC 9457. `code` is stable, `title` is a sentence and may change.', {
  title: text,
  status: z.int(),
  code: text,
  errors: optional(z.array(SettingProblem)),
  candidates: optional(z.array(Candidate)),
})

/** Only problems have a `code`. */
export const isProblem = (answer: object): answer is Problem => 'code' in answer

/** One operation of the admin API (4.5): where it is, who may call it, what it takes and answers, and what it does. */
export interface Operation<
  Query extends z.ZodObject = z.ZodObject,
  Body extends z.ZodType = z.ZodType,
  Answer extends z.ZodType = z.ZodType,
> {
  /** The method, and the path below that of the admin API. */
  route: `${'GET' | 'PUT' | 'POST'} /${string}`
  scope: AdminScope
  summary: string
  query?: Query
  body?: Body
  /** Add new fields at the end: by the first one, clients know the answer from that of a proxy. */
  answer: Answer
  status?: 200 | 202
  run(
    request: AdminRequest<z.output<Query>, z.output<Body>>,
    parts: AdminParts,
  ): Promise<(z.input<Answer> & object) | Problem>
}

/** Gives `run` the types of the schemas beside it. */
export function operation<
  Answer extends z.ZodType,
  Query extends z.ZodObject = z.ZodObject<{}>,
  Body extends z.ZodType = z.ZodUndefined,
>(
  route: Operation['route'],
  scope: AdminScope,
  described: Omit<Operation<Query, Body, Answer>, 'route' | 'scope'>,
): Operation<Query, Body, Answer> {
  return { route, scope, ...described }
}

/** Why nothing was done: a stable code, and a sentence. */
export function refusal(status: number, code: string, title: string): Problem {
  return { status, code, title }
}

export function invalid(title: string, ...errors: SettingProblem[]): Problem {
  return { ...refusal(400, 'invalid_request', title), errors }
}

export function invalidSettings(what: 'changed' | 'sent', errors: SettingProblem[]): Problem {
  const title = `Nothing was ${what}: some settings are not valid.`
  return { ...refusal(400, 'invalid_settings', title), errors }
}

export function notAnAddress(address: string, what: 'sent' | 'checked' | 'done', key = 'to') {
  const got = JSON.stringify(address).slice(0, 64)
  const title = `Nothing was ${what}: this is not an e-mail address.`
  return invalid(title, { key, expected: 'one plain e-mail address', got })
}

/** Waits 5 seconds at most, then throws `ERR_STORE_UNAVAILABLE`. A driver waits longer, but an admin who asks why nothing works should not. */
export async function inTime<T>(clock: Clock, work: Promise<T>): Promise<T> {
  const answer = await within(clock, 5_000, work)
  if (answer !== 'late') return answer
  const message = 'The database does not answer in time. Try again in a minute'
  throw new AccountFlowsError('ERR_STORE_UNAVAILABLE', message)
}
