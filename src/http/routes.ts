/** Answers our paths: it refuses forms of other sites and too many forms, reads the form, and calls the page of the path. */
import type { Context, Middleware, Next } from 'koa'
import { parametersFrom } from '../contract/requests.ts'
import type { Log, Requester } from '../contract/index.ts'
import { isCrossSite, type BrowserCookie } from './browser.ts'
import { showFailure } from './failure.ts'
import { idIn, readForm, uiLocalesIn, type SentForm } from './form.ts'
import { pathOf as pathOfRequest } from './mount.ts'
import type { Pages } from './pages.ts'
import type { TooMany } from './requester.ts'

export type Post = (visit: Visit, form: SentForm) => Promise<void>

interface FormRoute {
  post: Post
  /** The event of a network that sends too many forms. */
  tooMany: TooMany
}

/** The methods that a path answers; GET answers HEAD too. */
export type Route = { get?(visit: Visit): Promise<void> } & (FormRoute | { post?: undefined })

/** A request for one of our paths. */
export interface Visit {
  ctx: Context
  next: Next
  requester: Requester
  /** The value of our cookie. `undefined`: the browser sent no such cookie. */
  browser: string | undefined
}

interface RouteParts {
  pages: Pages
  /** For how many seconds the network of a form has to wait. `undefined`: it is within its limit. */
  limit(visit: Visit, event: TooMany): Promise<number | undefined>
  requesterOf(req: Context['req']): Requester
  browserCookie: BrowserCookie
  origin: string
  oauthPath: string
  log: Log
}

/** Answers our paths, and leaves every other to the provider. `routes` are by path below the OAuth path. */
export function createRoutes(parts: RouteParts, routes: Record<string, Route>): Middleware {
  const { pages, limit, requesterOf, browserCookie, origin, oauthPath, log } = parts
  const expectMounted = createMountCheck(oauthPath, log)

  // Other sites are refused before the form is counted. Otherwise they could use up the limit of a user.
  async function refusalOf(visit: Visit, tooMany: TooMany) {
    if (isCrossSite(visit.ctx.req, origin)) return 'refused'
    const seconds = await limit(visit, tooMany)
    if (seconds === undefined) return undefined
    visit.ctx.set('Retry-After', String(seconds))
    return 'too_many_requests'
  }

  async function readAndAnswer(visit: Visit, { post, tooMany }: FormRoute) {
    const { ctx } = visit
    const fields = (await refusalOf(visit, tooMany)) ?? (await readForm(ctx))
    if (typeof fields === 'string') return pages.showError(ctx, fields)
    const uiLocales = uiLocalesIn(fields)
    const requester = { ...visit.requester, uiLocales }
    const parameters = parametersFrom(fields)
    const form = { fields, parameters, uiLocales, formId: idIn(fields, 'form_id'), requester }
    await post(visit, form)
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
      showFailure(pages, log, ctx, error, from)
    }
  }
}

// Compares only the end of the path, because a proxy may strip the path of the base URL.
function createMountCheck(oauthPath: string, log: Log) {
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
