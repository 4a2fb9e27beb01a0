import type { Context } from 'koa'
import * as z from 'zod'
import { newId } from '../crypto/token.ts'
import { isJsonObject, jsonOf } from '../errors.ts'
import { readBody, type BodyRefusal } from '../http/input.ts'
import { reportFailure, showProblem } from '../http/failure.ts'
import { requesterOf } from '../http/requester.ts'
import { createAdminAuth } from './authentication.ts'
import {
  invalid,
  isProblem,
  refusal,
  type AdminParts,
  type AdminRequest,
  type Problem,
  type SettingProblem,
} from './operation.ts'
import { operations, type Operation } from './all-operations.ts'
import { Settings } from './settings.ts'

const AWAY = 'The database cannot be reached. Try again in a minute.'
const FAILURES = {
  unavailable: refusal(503, 'unavailable', AWAY),
  error: refusal(500, 'error', 'Something went wrong on our side. Try again in a moment.'),
}

const ROWS = Object.values<Operation>(operations).map((operation) => {
  const [method = '', path] = operation.route.split(' ')
  return { method, path, operation }
})

/** Its paths are below that of the admin API. */
export function createAdminRouter(parts: AdminParts) {
  const { options, audit, clock, log } = parts
  const authenticate = createAdminAuth(parts)

  /** `undefined`: the request is answered. */
  async function operate(ctx: Context, path: string): Promise<Problem | undefined> {
    const method = ctx.method === 'HEAD' ? 'GET' : ctx.method
    const there = ROWS.filter((row) => row.path === path)
    const { operation } = there.find((row) => row.method === method) ?? {}
    const admin = await authenticate(ctx, operation?.scope)
    if ('code' in admin) return admin
    if (!operation) return refusedMethod(ctx, there)
    const input = await readInput(ctx, operation)
    if ('code' in input) return input
    const { actor } = admin
    const requester = requesterOf(ctx.req, options.trustedProxies)
    const record: AdminRequest['record'] = (action, { accountId, details } = {}) => {
      const event = { id: newId(), type: 'admin_action', at: clock.now(), accountId } as const
      return audit({ ...event, details: { action, actor, ...details }, ...requester })
    }
    const tag = (etag: string) => ctx.set('ETag', etag)
    const outcome = await operation.run({ ...input, actor, requester, record, tag }, parts)
    if (isProblem(outcome)) return outcome
    ctx.status = operation.status ?? 200
    ctx.set({ 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' })
    ctx.body = outcome
    return undefined
  }

  return async (ctx: Context, path: string) => {
    const failed = (error: unknown) =>
      FAILURES[reportFailure(ctx, { message: 'admin request failed', path, log }, error)]
    const problem = await operate(ctx, path).catch(failed)
    if (problem) showProblem(ctx, problem)
  }
}

function refusedMethod(ctx: Context, there: { method: string }[]): Problem {
  if (there.length === 0) return refusal(404, 'not_found', 'There is no such operation.')
  const methods = there.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : method))
  ctx.set('Allow', methods.join(', '))
  return refusal(405, 'method_not_allowed', `Use ${methods.join(' or ')} here.`)
}

type Values = Record<string, unknown>

const INVALID = 'Nothing was done: the request is not valid.'
const NO_QUERY: z.ZodObject = z.strictObject({})
const BODY_PROBLEMS: Record<BodyRefusal, [status: number, title: string]> = {
  unsupported_media_type: [415, 'Send a body with the type application/json.'],
  body_too_large: [413, 'The body is too long: send at most 64 KiB.'],
  bad_request: [400, 'The body could not be read. Send one JSON object.'],
}

/** Reads the input of an operation. It refuses all that is not described, so that a misspelled `dry_run` changes nothing. */
async function readInput(ctx: Context, operation: Operation) {
  const schema = operation.query ?? NO_QUERY
  const asked = new URLSearchParams(ctx.querystring)
  const values = [...new Set(asked.keys())].map((key) => {
    const parameter = Object.hasOwn(schema.shape, key) ? schema.shape[key] : undefined
    return [key, meant(asked.getAll(key), parameter)]
  })
  const query = validated(Object.fromEntries(values), schema, 'parameter')
  if (Array.isArray(query)) return invalid(INVALID, ...query)
  const ifMatch = etagsOf(ctx)
  if (!operation.body) return { query, body: undefined, ifMatch }
  const given = await readObject(ctx)
  if (typeof given === 'string') {
    const [status, title] = BODY_PROBLEMS[given]
    return refusal(status, given, title)
  }
  const body = operation.body === Settings ? given : validated(given, operation.body, 'field')
  return Array.isArray(body) ? invalid(INVALID, ...body) : { query, body, ifMatch }
}

/** A query holds only texts. Takes the first reading that the schema accepts: a list, a text, or else a number or a boolean. */
function meant(texts: string[], schema: z.core.$ZodType | undefined): unknown {
  const [text = '', another] = texts
  if (another !== undefined) return texts
  const isAccepted = (reading: unknown) => schema && z.safeParse(schema, reading).success
  return [texts, text, scalarOf(text)].find(isAccepted) ?? text
}

function scalarOf(text: string): unknown {
  if (text === 'true' || text === 'false') return text === 'true'
  return /^\d{1,9}$/.test(text) ? Number(text) : text
}

/** The values with their defaults, or one problem for each value that is not as described. */
function validated(values: Values, schema: z.ZodType, what: string): Values | SettingProblem[] {
  const read = schema.safeParse(values)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- queries and bodies are objects
  if (read.success) return read.data as Values
  const problems = read.error.issues.flatMap((issue) => problemsOf(issue, values, what))
  return [...new Map(problems.toReversed().map((problem) => [problem.key, problem])).values()]
}

function problemsOf(issue: z.core.$ZodIssue, values: Values, what: string): SettingProblem[] {
  if (issue.code === 'unrecognized_keys') {
    const expected = `the name of a ${what}`
    return issue.keys.map((key) => ({ key, expected, got: 'another name' }))
  }
  const key = String(issue.path[0])
  if (issue.path.length === 1 && Array.isArray(values[key]) && what === 'parameter') {
    return [{ key, expected: 'one value', got: 'several' }]
  }
  const got = Object.hasOwn(values, key) ? 'something else' : 'nothing'
  return [{ key, expected: issue.message, got }]
}

async function readObject(ctx: Context): Promise<Values | BodyRefusal> {
  const body = await readBody(ctx, 'application/json')
  if (typeof body === 'string') return body
  const value = 'text' in body ? jsonOf(body.text) : body.parsed
  return isJsonObject(value) ? value : 'bad_request'
}

// RFC 9110, 13.1.1: strong comparison, so that a weak ETag equals none; `*` stands alone.
function etagsOf(ctx: Context): string[] | undefined {
  const etags = ctx.req.headers['if-match']?.split(',').map((etag) => etag.trim())
  return etags && etags.length > 1 ? etags.filter((etag) => etag !== '*') : etags
}
