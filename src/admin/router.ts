import type { Context } from 'koa'
import { reportFailure, showProblem } from '../http/failure.ts'
import { accountOperations } from './accounts.ts'
import { auditOperations } from './audit.ts'
import { createAdminAuth } from './authentication.ts'
import { operations, type Operation, type OperationName } from './description.ts'
import { doctorOperations } from './doctor.ts'
import { readInput } from './input.ts'
import { linkOperations } from './links.ts'
import { mailOperations } from './mails.ts'
import { outboxOperations } from './outbox.ts'
import type { AdminEndpoints, AdminParts, AdminRefusal } from './parts.ts'
import { settingsOperations } from './settings.ts'

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the type is made of it
const NAMES = Object.keys(operations) as OperationName[]

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
  const endpoints: AdminEndpoints = {
    ...settingsOperations(parts),
    ...accountOperations(parts),
    ...mailOperations(parts),
    ...outboxOperations(parts),
    ...auditOperations(parts),
    ...linkOperations(parts),
    ...doctorOperations(parts),
  }

  async function operate(ctx: Context, name: OperationName, actor: string): Promise<void> {
    const operation: Operation = operations[name]
    const input = await readInput(ctx, operation)
    if ('code' in input) return refuse(ctx, input)
    const request = { ...input, actor, requester: parts.requesterOf(ctx.req) }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- read by the description that the types are made of
    const outcome = await endpoints[name](request as never)
    if ('code' in outcome) return refuse(ctx, outcome)
    ctx.status = operation.status ?? 200
    ctx.set('Cache-Control', 'no-store')
    ctx.set('X-Content-Type-Options', 'nosniff')
    if (outcome.etag !== undefined) ctx.set('ETag', outcome.etag)
    ctx.body = outcome.answer
  }

  return async (ctx, path) => {
    try {
      const method = ctx.method === 'HEAD' ? 'GET' : ctx.method
      const there = NAMES.filter((name) => operations[name].route.endsWith(` ${path}`))
      const name = there.find((name) => operations[name].route === `${method} ${path}`)
      const admin = await authenticate(ctx, name && operations[name].scope)
      if (!admin) return
      if (name) await operate(ctx, name, admin.actor)
      else refuseMethod(ctx, there)
    } catch (error) {
      const code = reportFailure(ctx, { message: 'admin request failed', path, log }, error)
      const [status, title] = FAILURES[code]
      showProblem(ctx, status, code, title)
    }
  }
}

function refuseMethod(ctx: Context, there: OperationName[]): void {
  if (there.length === 0) return showProblem(ctx, 404, 'not_found', 'There is no such operation.')
  const methods = there.flatMap((name) => {
    const [method = ''] = operations[name].route.split(' ')
    return method === 'GET' ? ['GET', 'HEAD'] : method
  })
  ctx.set('Allow', methods.join(', '))
  showProblem(ctx, 405, 'method_not_allowed', `Use ${methods.join(' or ')} here.`)
}

function refuse(ctx: Context, { status, code, title, ...more }: AdminRefusal): void {
  showProblem(ctx, status, code, title, more)
}
