/**
 * Answers our paths: it refuses forms of other sites and too many forms, reads the form, and calls the page of the path. This folder never
 * knows how records are stored and mails are sent; of the provider, only what `oidc/` offers.
 */
import type { Context, Middleware, Next } from 'koa'
import { parametersFrom } from '../contract/parameters.ts'
import type { Requester } from '../contract/index.ts'
import type { BrowserCookie } from './browser.ts'
import { isCrossSite } from './cross-site.ts'
import { idIn, readForm, uiLocalesIn, type SentForm } from './input.ts'
import { pathOf as pathOfRequest } from './mount.ts'
import type { Pages } from './pages.ts'
import { createRequestLimit, type RequestLimitParts, type TooMany } from './request-limit.ts'

export type Post = (visit: Visit, form: SentForm) => Promise<void>

interface FormRoute {
  post: Post
  /** The event that is recorded, once for each network and window, if too many forms come. */
  tooMany: TooMany
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

interface DispatcherParts extends RequestLimitParts {
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
  async function refusalOf(visit: Visit, { tooMany }: FormRoute) {
    if (isCrossSite(visit.ctx.req, origin)) return 'refused'
    const seconds = await secondsToWait(visit.ctx, visit.requester, tooMany)
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
