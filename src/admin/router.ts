import type { Context } from 'koa'
import type { Operations, Problem } from './api-types.ts'
import { operations, type Operation } from './operations.ts'
import type { Requester } from '../ports/index.ts'
import { problemsOf, readObject, readQuery } from './input.ts'
import type { AdminRoute } from './api.ts'
import type { BodyRefusal } from '../http/body.ts'
import { showProblem } from '../http/problem.ts'

type Name = keyof Operations

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types are made of it
const NAMES = Object.keys(operations) as Name[]

export interface AdminRequest<N extends Name = Name> {
  query: Operations[N]['query']
  body: Operations[N]['body']
  /** ETags of `If-Match`; `undefined`: there is no such header. */
  ifMatch: string[] | undefined
  /** Who shows the token, for the audit log. */
  actor: string
  requester: Requester
}

export interface AdminAnswer<N extends Name = Name> {
  answer: Operations[N]['answer']
  etag?: string
}

export type AdminRefusal = Pick<Problem, 'status' | 'code' | 'title' | 'errors' | 'candidates'>

/** What answers each operation. */
export type AdminEndpoints = {
  [N in Name]: (request: AdminRequest<N>) => Promise<AdminAnswer<N> | AdminRefusal>
}

const BODY_PROBLEMS: Record<BodyRefusal, [status: number, code: string, title: string]> = {
  unsupported_media_type: [415, 'unsupported_media_type', 'Send a body of application/json.'],
  body_too_large: [413, 'body_too_large', 'Send at most 64 KiB.'],
  bad_request: [400, 'bad_request', 'The body could not be read. Send one JSON object.'],
}

/** Finds the operation and its scope; once whoever asks is known to have it, reads what it takes and answers what it says. */
export function createAdminRouter(
  endpoints: AdminEndpoints,
  requesterOf: (ctx: Context) => Requester,
) {
  async function answer(ctx: Context, name: Name, actor: string) {
    const operation: Operation = operations[name]
    const query = readQuery(ctx, operation)
    if (Array.isArray(query)) return refuseInput(ctx, query)
    const body = operation.body ? await readObject(ctx) : undefined
    if (typeof body === 'string') return showProblem(ctx, ...BODY_PROBLEMS[body])
    if (body && operation.body && operation.body !== 'Settings') {
      const problems = problemsOf(body, operation.body)
      if (problems.length > 0) return refuseInput(ctx, problems)
    }
    const request = { query, body, ifMatch: etagsOf(ctx), actor, requester: requesterOf(ctx) }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- read by the description that the types are made of
    const outcome = await endpoints[name](request as never)
    if ('code' in outcome) {
      const { status, code, title, ...more } = outcome
      return showProblem(ctx, status, code, title, more)
    }
    ctx.status = operation.status ?? 200
    ctx.set('Cache-Control', 'no-store')
    ctx.set('X-Content-Type-Options', 'nosniff')
    if (outcome.etag !== undefined) ctx.set('ETag', outcome.etag)
    ctx.body = outcome.answer
  }

  function refuseMethod(ctx: Context, there: Operation['method'][]) {
    if (there.length === 0) return showProblem(ctx, 404, 'not_found', 'There is nothing here.')
    const methods = there.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : method))
    ctx.set('Allow', methods.join(', '))
    showProblem(ctx, 405, 'method_not_allowed', `Use ${methods.join(' or ')} here.`)
  }

  return (ctx: Context, path: string): AdminRoute => {
    const method = ctx.method === 'HEAD' ? 'GET' : ctx.method
    const there = NAMES.filter((name) => operations[name].path === path)
    const name = there.find((name) => operations[name].method === method)
    if (name) return { scope: operations[name].scope, answer: (actor) => answer(ctx, name, actor) }
    const methods = there.map((name) => operations[name].method)
    return { scope: undefined, answer: () => refuseMethod(ctx, methods) }
  }
}

function refuseInput(ctx: Context, errors: Problem['errors']) {
  showProblem(
    ctx,
    400,
    'invalid_request',
    'Nothing was done: the request is not as it should be.',
    {
      errors,
    },
  )
}

// RFC 9110, 13.1.1: strong comparison, so that a weak ETag equals none; `*` stands alone.
function etagsOf(ctx: Context): string[] | undefined {
  const etags = ctx.req.headers['if-match']?.split(',').map((etag) => etag.trim())
  return etags && etags.length > 1 ? etags.filter((etag) => etag !== '*') : etags
}
