import type { Context, Middleware } from 'koa'
import { html } from './html.ts'
import { logFailure } from './logging.ts'
import type { ShowPage } from './page.ts'

/** What another try mends, by the code of the error. */
const REASONS = new Map<unknown, string>([
  ['ERR_STORE_UNAVAILABLE', 'the database cannot be reached'],
  ['ERR_OVERLOADED', 'too many passwords wait to be checked'],
])

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
    show(ctx, {
      name: 'error',
      mode: 'unavailable',
      title: 'This isn’t working right now',
      content: html`<p>Nothing is lost. Wait a minute, then try again.</p>`,
    })
  }

  return async (ctx, next) => {
    try {
      if ((await until(noTimeLeft, next())) === 'aborted' && !ctx.headerSent) showUnavailable(ctx)
    } catch (error) {
      const reason = REASONS.get(Reflect.get(Object(error), 'code'))
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
