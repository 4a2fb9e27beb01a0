import type { Context } from 'koa'
import { reportFailure, showProblem } from '../http/failure.ts'
import { createAdminAuth } from './authentication.ts'
import { readInput } from './input.ts'
import type { AdminParts, Operation } from './operation.ts'
import { operations } from './operations.ts'

const LIST = Object.values<Operation>(operations)

const FAILURES = {
  unavailable: [503, 'The database cannot be reached. Try again in a minute.'],
  error: [500, 'Something went wrong on our side. Try again in a moment.'],
} as const

/** @param path - below that of the admin API. */
export type AdminRouter = (ctx: Context, path: string) => Promise<void>

/**
 * The admin API (4.5, 5). It finds the operation, checks the token and its scope, reads the request, and answers.
 */
export function createAdminRouter(parts: AdminParts): AdminRouter {
  const { log } = parts
  const authenticate = createAdminAuth(parts)

  async function operate(ctx: Context, operation: Operation, actor: string): Promise<void> {
    const input = await readInput(ctx, operation)
    const caller = { actor, requester: parts.requesterOf(ctx.req) }
    const outcome = 'code' in input ? input : await operation.run({ ...input, ...caller }, parts)
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

  return async (ctx, path) => {
    try {
      const method = ctx.method === 'HEAD' ? 'GET' : ctx.method
      const there = LIST.filter(({ route }) => route.endsWith(` ${path}`))
      const operation = there.find(({ route }) => route === `${method} ${path}`)
      const admin = await authenticate(ctx, operation?.scope)
      if (!admin) return
      if (operation) await operate(ctx, operation, admin.actor)
      else refuseMethod(ctx, there)
    } catch (error) {
      const code = reportFailure(ctx, { message: 'admin request failed', path, log }, error)
      const [status, title] = FAILURES[code]
      showProblem(ctx, status, code, title)
    }
  }
}

function refuseMethod(ctx: Context, there: Operation[]): void {
  if (there.length === 0) return showProblem(ctx, 404, 'not_found', 'There is no such operation.')
  const methods = there.flatMap(({ route }) => {
    const [method = ''] = route.split(' ')
    return method === 'GET' ? ['GET', 'HEAD'] : method
  })
  ctx.set('Allow', methods.join(', '))
  showProblem(ctx, 405, 'method_not_allowed', `Use ${methods.join(' or ')} here.`)
}
