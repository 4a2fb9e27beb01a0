import type { Context, Middleware, Next } from 'koa'
import type { Log } from '../ports.ts'
import { isCrossSite } from './cross-site.ts'
import { reportFailure } from './failure.ts'
import type { Pages } from './pages.ts'
import type { RequestLimit } from './request-limit.ts'

type Handler = (ctx: Context, next: Next) => Promise<void>

/** The methods that a path answers; GET answers HEAD too. */
export interface Route {
  get?: Handler
  post?: Handler
}

export interface RoutesParts {
  /** By path below the OAuth path. */
  routes: Record<string, Route>
  pages: Pages
  /** Origin of the configured base URL. */
  origin: string
  limitOf: RequestLimit
  log: Log
}

/** Answers our paths, and leaves every other to the provider. */
export function createRoutes(parts: RoutesParts): Middleware {
  const { routes, pages, origin, limitOf, log } = parts

  // In this order: another site must not use up what its visitors may send.
  async function mayPost(ctx: Context) {
    if (isCrossSite(ctx, origin)) {
      pages.showError(ctx, 'refused')
      return false
    }
    const retryAfter = await limitOf(ctx)
    if (retryAfter === undefined) return true
    ctx.set('Retry-After', String(retryAfter))
    pages.showError(ctx, 'too_many_requests')
    return false
  }

  return async (ctx, next) => {
    const { path } = ctx
    const route = Object.hasOwn(routes, path) ? routes[path] : undefined
    if (!route) {
      await next()
      return
    }
    const handler = ctx.method === 'POST' ? route.post : route.get
    if (!handler || !['GET', 'HEAD', 'POST'].includes(ctx.method)) {
      ctx.set('Allow', allowed(route))
      pages.showError(ctx, 'method_not_allowed')
      return
    }
    try {
      if (ctx.method !== 'POST' || (await mayPost(ctx))) await handler(ctx, next)
    } catch (error) {
      const mode = reportFailure(ctx, { message: 'request failed', path, log }, error)
      ctx.remove('Location')
      ctx.remove('Set-Cookie')
      pages.showError(ctx, mode)
    }
  }
}

function allowed({ get, post }: Route): string {
  return [get && 'GET, HEAD', post && 'POST'].filter(Boolean).join(', ')
}
