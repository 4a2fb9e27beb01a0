import type { IncomingMessage, ServerResponse } from 'node:http'
import Koa, { type Context, type Middleware } from 'koa'
import type { AdminScope } from './scopes.ts'
import type { Log } from '../ports/index.ts'
import { reportFailure } from '../http/failure.ts'
import { showProblem } from '../http/problem.ts'

export type NodeHandler = (
  req: IncomingMessage,
  res: ServerResponse,
  next: (error?: unknown) => void,
) => void

/** What a request asks for. */
export interface AdminRoute {
  /** `undefined`: there is no such operation. */
  scope: AdminScope | undefined
  answer(actor: string): void | Promise<void>
}

export interface AdminApi {
  middleware: Middleware
  handler: NodeHandler
}

const FAILURES: Record<
  ReturnType<typeof reportFailure>,
  [status: number, code: string, title: string]
> = {
  unavailable: [503, 'unavailable', 'The database cannot be reached. Try again in a minute.'],
  error: [500, 'error', 'Something went wrong on our side. Try again in a moment.'],
}

/**
 * Answers what lies below one path of the full address, whatever prefix a framework has stripped before.
 *
 * @param root - path of the base URL plus `/admin/api`.
 * @param authenticate - lets an admin in who has the scope, or answers. `undefined`: nothing is there to be allowed.
 * @param route - finds what is asked for, by its path below the root.
 */
export function createAdminApi(
  root: string,
  authenticate: (
    ctx: Context,
    scope: AdminScope | undefined,
  ) => Promise<{ actor: string } | undefined>,
  route: (ctx: Context, path: string) => AdminRoute,
  log: Log,
): AdminApi {
  async function answer(ctx: Context, path: string) {
    try {
      const { scope, answer } = route(ctx, path)
      const admin = await authenticate(ctx, scope)
      if (admin) await answer(admin.actor)
    } catch (error) {
      const mode = reportFailure(ctx, { message: 'admin request failed', path, log }, error)
      showProblem(ctx, ...FAILURES[mode])
    }
  }

  const middleware: Middleware = (ctx, next) => {
    const path = pathBelow(root, fullUrl(ctx.req) ?? ctx.originalUrl)
    return path === undefined ? next() : answer(ctx, path)
  }
  const bare = new Koa()
  bare.use(middleware)
  bare.on('error', (error: unknown) => {
    log('warn', 'an admin request broke off', { error: String(error) })
  })
  const listener = bare.callback()

  return {
    middleware,
    handler(req, res, next) {
      const isOurs = pathBelow(root, fullUrl(req) ?? req.url ?? '') !== undefined
      if (isOurs) void listener(req, res)
      else next()
    },
  }
}

/** Express and Fastify strip a prefix from `url`, and keep the whole elsewhere. `undefined`: this framework does not. */
export function fullUrl(req: IncomingMessage): string | undefined {
  const original: unknown = Reflect.get(req, 'originalUrl')
  return typeof original === 'string' ? original : undefined
}

function pathBelow(root: string, url: string): string | undefined {
  const path = url.replace(/[?#].*/s, '')
  return path.startsWith(`${root}/`) ? path.slice(root.length) : undefined
}
