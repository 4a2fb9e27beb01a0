import type { Context } from 'koa'
import { reportFailure, showProblem } from '../http/failure.ts'
import { createAdminAuth } from './authentication.ts'
import { readInput } from './input.ts'
import { isProblem, refusal, type AdminParts, type Operation, type Problem } from './operation.ts'
import { operations } from './operations.ts'

const LIST: Operation[] = Object.values(operations)

const FAILURES = {
  unavailable: refusal(
    503,
    'unavailable',
    'The database cannot be reached. Try again in a minute.',
  ),
  error: refusal(500, 'error', 'Something went wrong on our side. Try again in a moment.'),
}

/** @param path - below that of the admin API. */
export type AdminRouter = (ctx: Context, path: string) => Promise<void>

/** The admin API (4.5, 5). */
export function createAdminRouter(parts: AdminParts): AdminRouter {
  const authenticate = createAdminAuth(parts)

  /** `undefined`: it is answered. */
  async function operate(ctx: Context, path: string): Promise<Problem | undefined> {
    const method = ctx.method === 'HEAD' ? 'GET' : ctx.method
    const there = LIST.filter(({ route }) => route.endsWith(` ${path}`))
    const operation = there.find(({ route }) => route === `${method} ${path}`)
    const admin = await authenticate(ctx, operation?.scope)
    if ('code' in admin) return admin
    if (!operation) return refusedMethod(ctx, there)
    const input = await readInput(ctx, operation)
    if ('code' in input) return input
    const caller = { actor: admin.actor, requester: parts.requesterOf(ctx.req) }
    const tag = (etag: string) => ctx.set('ETag', etag)
    const outcome = await operation.run({ ...input, ...caller, tag }, parts)
    if (isProblem(outcome)) return outcome
    ctx.status = operation.status ?? 200
    ctx.set('Cache-Control', 'no-store')
    ctx.set('X-Content-Type-Options', 'nosniff')
    ctx.body = outcome
    return undefined
  }

  return async (ctx, path) => {
    const failed = (error: unknown) =>
      FAILURES[reportFailure(ctx, { message: 'admin request failed', path, log: parts.log }, error)]
    const problem = await operate(ctx, path).catch(failed)
    if (!problem) return
    const { status, code, title, ...more } = problem
    showProblem(ctx, status, code, title, more)
  }
}

function refusedMethod(ctx: Context, there: { route: string }[]): Problem {
  if (there.length === 0) return refusal(404, 'not_found', 'There is no such operation.')
  const methods = there.flatMap(({ route }) => {
    const [method = ''] = route.split(' ')
    return method === 'GET' ? ['GET', 'HEAD'] : method
  })
  ctx.set('Allow', methods.join(', '))
  return refusal(405, 'method_not_allowed', `Use ${methods.join(' or ')} here.`)
}
