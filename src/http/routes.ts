import type { Context, Middleware, Next } from 'koa'
import type { CheckedOptions } from '../options.ts'
import type { Log } from '../contract/index.ts'
import { isCrossSite } from './browser.ts'
import { showFailure } from './failure.ts'
import { idIn, readForm, uiLocalesIn, type SentForm } from './form.ts'
import { pathOf as pathOfRequest } from './mount.ts'
import type { HttpParts } from './parts.ts'
import { createRequestLimit } from './requester.ts'
import { randomInt } from 'node:crypto'
import type { Clock } from '../clock.ts'

/** The methods that a path answers; GET answers HEAD too. */
export interface Route {
  get?(ctx: Context, next: Next): Promise<void>
  post?(ctx: Context, form: SentForm, next: Next): Promise<void>
}

/** Answers our paths, and leaves every other to the provider. `routes` are by path below the OAuth path. */
export function createRoutes(
  parts: HttpParts,
  routes: Record<string, Route>,
  options: Pick<CheckedOptions, 'oauthPath' | 'trustedProxies' | 'responseDelay'>,
): Middleware {
  const { pages, origin, requesterOf, clock, log } = parts
  const limit = createRequestLimit(parts, options.trustedProxies)
  const startDelay = responseDelay(clock, options.responseDelay)
  const expectMounted = createMountCheck(options.oauthPath, log)

  // Other sites are refused before the form is counted. Otherwise they could use up the limit of a person.
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

  async function readAndAnswer(ctx: Context, next: Next, answer: NonNullable<Route['post']>) {
    const fields = await readForm(ctx)
    const randomDelay = startDelay()
    if (typeof fields === 'string') return pages.showError(ctx, fields)
    const uiLocales = uiLocalesIn(fields)
    const requester = { ...requesterOf(ctx.req), uiLocales }
    const form = { fields, uiLocales, formId: idIn(fields, 'form_id'), requester, randomDelay }
    await answer(ctx, form, next)
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
    const { get, post } = route
    // A resumed request has another path afterwards.
    const from = ctx.path
    try {
      if (get && ['GET', 'HEAD'].includes(ctx.method)) await get(ctx, next)
      else if (!post || ctx.method !== 'POST') {
        ctx.set('Allow', [get && 'GET, HEAD', post && 'POST'].filter(Boolean).join(', '))
        pages.showError(ctx, 'method_not_allowed')
      } else if (!(await isRefused(ctx))) await readAndAnswer(ctx, next, post)
    } catch (error) {
      showFailure(pages, log, ctx, error, from)
    }
  }
}

// The end alone, because a proxy may strip the path of the base URL.
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

/** The random delay of answers, in milliseconds: from `floorMs` to `floorMs + jitterMs`. */
export interface ResponseDelay {
  floorMs: number
  jitterMs: number
}

/** The random delay of 4.2 and 4.7, by a clock that is never set back. It starts after the body was read: a slow body would use it up. */
export function responseDelay({ sleep }: Clock, { floorMs, jitterMs }: ResponseDelay) {
  return () => {
    const jitter = jitterMs > 0 ? randomInt(jitterMs * 1000) / 1000 : 0
    const until = performance.now() + floorMs + jitter
    return async () => {
      const rest = until - performance.now()
      if (rest > 0) await sleep(rest)
    }
  }
}
