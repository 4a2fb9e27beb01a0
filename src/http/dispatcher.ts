/**
 * Answers our paths: it refuses forms of other sites and too many forms, reads the form, and calls the page of the path. This folder never
 * knows how records are stored and mails are sent; of the provider, only what `oidc/` offers.
 */
import { Server, type Socket } from 'node:net'
import type { Context, Middleware, Next } from 'koa'
import type { AuditEvent, Requester } from '../contract/index.ts'
import { parametersFrom } from '../contract/parameters.ts'
import { newId } from '../crypto/token.ts'
import type { CommonParts } from '../flows/parts.ts'
import { isLoopbackHost } from '../settings/addresses.ts'
import type { RateLimits } from '../store/index.ts'
import type { BrowserCookie } from './browser.ts'
import { idIn, readForm, uiLocalesIn, type SentForm } from './input.ts'
import { pathOf as pathOfRequest } from './mount.ts'
import type { Pages } from './pages.ts'
import { isCrossSite, networkOf } from './requester.ts'

const MINUTE_MS = 60_000

export type Post = (visit: Visit, form: SentForm) => Promise<void>

interface FormRoute {
  post: Post
  /** The event that is recorded, once for each network and minute, for the first form over the limit. */
  tooMany: Extract<AuditEvent, { reason: 'too_many_requests' }>['type']
}

/** The methods that a path answers; GET answers HEAD too. */
export type Route = { get?(visit: Visit): Promise<void> } & (FormRoute | { post?: undefined })

export interface Visit {
  ctx: Context
  next: Next
  requester: Requester
  /** The value of our cookie. `undefined`: the browser sent no such cookie. */
  browser: string | undefined
}

interface DispatcherParts extends CommonParts {
  limits: RateLimits
  trustedProxies: number
  pages: Pages
  requesterOf(req: Context['req']): Requester
  browserCookie: BrowserCookie
  origin: string
  oauthPath: string
}

/** Answers our paths, and leaves every other to the provider. `routes` are by path below the OAuth path. */
export function createDispatcher(
  parts: DispatcherParts,
  routes: Record<string, Route>,
): Middleware {
  const { pages, requesterOf, browserCookie, origin } = parts
  const expectMounted = createMountCheck(parts)
  const secondsToWait = createRequestLimit(parts)

  // Other sites are refused before the form is counted. Otherwise they could use up the limit of a user.
  async function refusalOf(visit: Visit, route: FormRoute) {
    if (isCrossSite(visit.ctx.req, origin)) return 'refused'
    const seconds = await secondsToWait(visit, route)
    if (seconds === undefined) return undefined
    visit.ctx.set('Retry-After', String(seconds))
    return 'too_many_requests'
  }

  async function readAndAnswer(visit: Visit, route: FormRoute) {
    const { ctx } = visit
    const fields = (await refusalOf(visit, route)) ?? (await readForm(ctx))
    if (typeof fields === 'string') return pages.showError(ctx, fields)
    const uiLocales = uiLocalesIn(fields)
    const requester = { ...visit.requester, uiLocales }
    const parameters = parametersFrom(fields)
    const form = { fields, parameters, uiLocales, formId: idIn(fields, 'form_id'), requester }
    await route.post(visit, form)
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
    // Kept, because a resumed request has another path afterwards.
    const from = ctx.path
    try {
      const { req } = ctx
      const visit = { ctx, next, requester: requesterOf(req), browser: browserCookie.read(req) }
      if (route.get && ['GET', 'HEAD'].includes(ctx.method)) await route.get(visit)
      else if (route.post && ctx.method === 'POST') await readAndAnswer(visit, route)
      else {
        const allowed = [route.get && 'GET, HEAD', route.post && 'POST']
        ctx.set('Allow', allowed.filter(Boolean).join(', '))
        pages.showError(ctx, 'method_not_allowed')
      }
    } catch (error) {
      pages.showFailure(ctx, error, from)
    }
  }
}

/**
 * The limit of forms from one network (`requests_per_ip_per_minute`). All forms share one bucket. It does not read the form, so its answer
 * says nothing about an account. It returns for how many seconds the network has to wait. `undefined`: it is within the limit.
 */
function createRequestLimit(parts: DispatcherParts) {
  const { limits, trustedProxies, settings, audit, clock, log } = parts
  let hasWarned = false

  function warnOfUndeclaredProxy(ctx: Context) {
    if (hasWarned || trustedProxies > 0) return
    if (ctx.get('X-Forwarded-For') === '' && ctx.get('Forwarded') === '') return
    hasWarned = true
    log(
      'warn',
      'a request has the header of a proxy, but trustedProxies is 0. Behind a proxy, set trustedProxies: without it, limits by IP address do not work',
    )
  }

  // Behind an undeclared proxy on this machine, all clients would share one bucket.
  const isExempt = ({ socket }: Context['req']) =>
    trustedProxies === 0 && (isLoopbackHost(socket.remoteAddress ?? '') || isUnixSocket(socket))

  return async ({ ctx, requester }: Visit, { tooMany: type }: FormRoute) => {
    warnOfUndeclaredProxy(ctx)
    const { requestsPerIpPerMinute: max } = settings()
    if (max === 0 || isExempt(ctx.req)) return undefined
    const key = `requests:${networkOf(requester.address)}`
    const { count, msToEnd } = await limits.hit(key, MINUTE_MS, max)
    if (count <= max) return undefined
    if (count === max + 1)
      await audit({ id: newId(), type, at: clock.now(), reason: 'too_many_requests', ...requester })
    return Math.max(1, Math.ceil(msToEnd / 1000))
  }
}

// Asks the server, because a closed connection has no address either.
function isUnixSocket(socket: Socket): boolean {
  const server: unknown = Reflect.get(socket, 'server')
  return server instanceof Server && typeof server.address() === 'string'
}

// Compares only the end of the path, because a proxy may strip the path of the base URL.
function createMountCheck({ oauthPath, log }: DispatcherParts) {
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

/** `undefined`: the request has no valid path, as in `GET http://[ HTTP/1.1`, for which Koa throws. */
function pathOf(ctx: Context): string | undefined {
  try {
    return ctx.path ?? undefined
  } catch {
    return undefined
  }
}
