import type { Context, Middleware, Next } from 'koa'
import { isCrossSite } from './cross-site.ts'
import { reportFailure } from './failure.ts'
import { pathOf as pathOfRequest } from './mount.ts'
import type { HttpParts } from './parts.ts'
import type { RequestLimit } from './request-limit.ts'
import type { Asset } from '../views/index.ts'

type Handler = (ctx: Context, next: Next) => Promise<void>

/** The methods that a path answers; GET answers HEAD too. */
export interface Route {
  get?: Handler
  post?: Handler
}

interface RoutesParts extends Pick<HttpParts, 'pages' | 'origin' | 'log'> {
  /** By path below the OAuth path. */
  routes: Record<string, Route>
  limit: RequestLimit
  /** Where the provider should be mounted. */
  oauthPath: string
}

/** Answers our paths, and leaves every other to the provider. */
export function createRoutes(parts: RoutesParts): Middleware {
  const { routes, pages, origin, limit, log } = parts
  const expectMounted = createMountCheck(parts)

  // What a foreign page makes a browser send is not counted: it would use up what its person may ask for.
  async function isRefused(ctx: Context): Promise<boolean> {
    if (isCrossSite(ctx.req, origin)) {
      pages.showError(ctx, 'refused')
      return true
    }
    const seconds = await limit(ctx)
    if (seconds === undefined) return false
    ctx.set('Retry-After', String(seconds))
    pages.showError(ctx, 'too_many_requests')
    return true
  }

  return async (ctx, next) => {
    const path = pathOf(ctx)
    if (path === undefined) {
      ctx.status = 400
      ctx.body = 'The address of this request is not valid.\n'
      return
    }
    const route = Object.hasOwn(routes, path) ? routes[path] : undefined
    if (!route) {
      await next()
      return
    }
    expectMounted(ctx, path)
    const handler = ctx.method === 'POST' ? route.post : route.get
    if (!handler || !['GET', 'HEAD', 'POST'].includes(ctx.method)) {
      ctx.set('Allow', allowed(route))
      pages.showError(ctx, 'method_not_allowed')
      return
    }
    try {
      if (ctx.method === 'POST' && (await isRefused(ctx))) return
      await handler(ctx, next)
    } catch (error) {
      const mode = reportFailure(ctx, { message: 'request failed', path, log }, error)
      ctx.remove('Location')
      ctx.remove('Set-Cookie')
      pages.showError(ctx, mode)
    }
  }
}

// A proxy in front may strip the path of the base URL, so what is in front of `oauthPath` is not looked at.
function createMountCheck({ oauthPath, log }: RoutesParts) {
  let isTold = false
  return (ctx: Context, path: string) => {
    const asked = pathOfRequest(ctx.req, ctx.originalUrl)
    if (isTold || asked.endsWith(oauthPath + path)) return
    isTold = true
    const wanted = `oauthPath, ${oauthPath || 'the root'}`
    log('error', `the provider must be mounted at ${wanted}: no link of a page or mail works`, {
      path: asked,
    })
  }
}

/** `undefined`: there is none, as in `GET http://[ HTTP/1.1`, for which Koa throws. */
function pathOf(ctx: Context): string | undefined {
  try {
    return ctx.path ?? undefined
  } catch {
    return undefined
  }
}

function allowed({ get, post }: Route): string {
  return [get && 'GET, HEAD', post && 'POST'].filter(Boolean).join(', ')
}

const YEAR_SECONDS = 31_536_000

/** A file that our pages load: the style sheet, the script or the icon. */
export function asset(
  type: 'text/css' | 'text/javascript' | 'image/svg+xml',
  { text, version }: Asset,
): Route {
  return {
    async get(ctx) {
      // A page asks for the version that it was made with; another process, older or newer, may answer.
      const isVersion = ctx.querystring === `v=${version}`
      ctx.set(
        'Cache-Control',
        isVersion ? `public, max-age=${YEAR_SECONDS}, immutable` : 'no-cache',
      )
      ctx.set('X-Content-Type-Options', 'nosniff')
      ctx.status = 200
      ctx.type = `${type}; charset=utf-8`
      ctx.etag = version
      if (ctx.fresh) ctx.status = 304
      else ctx.body = text
    },
  }
}
