import type { Context, Middleware } from 'koa'
import { logFailure } from './logging.ts'
import type { ShowPage } from './page.ts'

/** For what is no page of ours, such as a form of the provider that a script posts; our own pages are stricter. */
const HEADERS = {
  'Content-Security-Policy': "base-uri 'none'; frame-ancestors 'none'; object-src 'none'",
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'X-Robots-Tag': 'noindex',
}

const MODES = new Map([
  [404, 'not_found'],
  [405, 'method_not_allowed'],
  [413, 'body_too_large'],
  [429, 'too_many_requests'],
])

/** What another try mends, by the code of the error. */
const CAUSE_OF_REASON = new Map<unknown, string>([
  ['ERR_STORE_UNAVAILABLE', 'the database cannot be reached'],
  ['ERR_OVERLOADED', 'too many passwords wait to be checked'],
  ['ERR_VALIDATOR_FAILED', 'a new password cannot be checked'],
])

/** Every failure is a page that repeats nothing of the request, and says nothing of what failed; the log does. */
export function errorPages(show: ShowPage): Middleware {
  return async (ctx, next) => {
    ctx.set(HEADERS)
    let failed = false
    try {
      await next()
    } catch (error) {
      if (ctx.headerSent) throw error
      failed = true
      ctx.respond = true
      ctx.remove('Set-Cookie')
      ctx.status = statusOf(error)
      if (ctx.status === 500) ctx.app.emit('error', error, ctx)
    }
    if (ctx.respond === false || ctx.status < 400 || (ctx.body && !failed)) return
    const { status } = ctx
    show(ctx, {
      name: 'error',
      mode: MODES.get(status) ?? (status < 500 ? 'bad_request' : 'error'),
    })
    ctx.status = status
  }
}

/**
 * While the database cannot be reached, the pages of the example say so, to everybody alike. So does a login for which too many
 * others wait, and every request that is still in flight when `noTimeLeft` is aborted.
 */
export function unavailablePage(show: ShowPage, noTimeLeft: AbortSignal): Middleware {
  function showUnavailable(ctx: Context) {
    ctx.respond = true
    ctx.remove('Set-Cookie')
    ctx.status = 503
    ctx.set('Retry-After', '60')
    show(ctx, { name: 'error', mode: 'unavailable' })
  }

  return async (ctx, next) => {
    try {
      if ((await until(noTimeLeft, next())) === 'aborted' && !ctx.headerSent) showUnavailable(ctx)
    } catch (error) {
      const reason = CAUSE_OF_REASON.get(Reflect.get(Object(error), 'code'))
      if (reason === undefined) throw error
      logFailure(reason, error, ctx)
      showUnavailable(ctx)
    }
  }
}

async function until(signal: AbortSignal, work: Promise<unknown>): Promise<unknown> {
  let abort = () => {}
  const aborted = new Promise((resolve) => {
    abort = () => resolve('aborted')
  })
  signal.addEventListener('abort', abort)
  return Promise.race([work, aborted]).finally(() => signal.removeEventListener('abort', abort))
}

function statusOf(error: unknown): number {
  const status: unknown = Reflect.get(Object(error), 'status')
  return typeof status === 'number' && status >= 400 && status < 500 ? status : 500
}
