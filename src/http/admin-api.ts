import type { IncomingMessage, ServerResponse } from 'node:http'
import Koa, { type Context, type Middleware } from 'koa'
import type { Log } from '../ports.ts'
import { showProblem } from './problem.ts'

export type NodeHandler = (
  req: IncomingMessage,
  res: ServerResponse,
  next: (error?: unknown) => void,
) => void

export interface AdminApi {
  middleware: Middleware
  handler: NodeHandler
}

/**
 * Answers what lies below one path of the full address, whatever prefix a framework has stripped before (D3).
 *
 * @param root - path of the base URL plus `/admin/api`.
 * @param endpoints - by path below the root.
 */
export function createAdminApi(
  root: string,
  endpoints: Record<string, (ctx: Context) => Promise<void>>,
  log: Log,
): AdminApi {
  async function answer(ctx: Context) {
    const path = fullPath(ctx.req).slice(root.length)
    const endpoint = Object.hasOwn(endpoints, path) ? endpoints[path] : undefined
    if (!endpoint) return showProblem(ctx, 404, 'There is nothing here.')
    try {
      await endpoint(ctx)
    } catch (error) {
      log('error', 'admin request failed', { path, error: String(error) })
      showProblem(ctx, 500, 'Something went wrong on our side. Try again in a moment.')
    }
  }

  const isOurs = (req: IncomingMessage) => fullPath(req).startsWith(`${root}/`)
  const bare = new Koa()
  bare.use((ctx) => answer(ctx))
  const listener = bare.callback()

  return {
    middleware: (ctx, next) => (isOurs(ctx.req) ? answer(ctx) : next()),
    handler: (req, res, next) => (isOurs(req) ? void listener(req, res) : next()),
  }
}

function fullPath(req: IncomingMessage): string {
  const original: unknown = Reflect.get(req, 'originalUrl')
  const url = typeof original === 'string' ? original : (req.url ?? '')
  return url.replace(/[?#].*$/s, '')
}
