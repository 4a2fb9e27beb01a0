import type { Context, Middleware } from 'koa'
import { html } from './html.ts'
import { logFailure } from './logging.ts'
import type { ShowPage } from './page.ts'

/**
 * While the database cannot be reached, the pages of the example say so, to everybody alike. So does every request that is
 * still in flight when `noTimeLeft` is aborted.
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
      title: 'This does not work right now',
      content: html`<p>Nothing is lost. Wait a minute and try again.</p>`,
    })
  }

  return async (ctx, next) => {
    try {
      if ((await until(noTimeLeft, next())) === 'aborted' && !ctx.headerSent) showUnavailable(ctx)
    } catch (error) {
      if (Reflect.get(Object(error), 'code') !== 'ERR_STORE_UNAVAILABLE') throw error
      logFailure('the database cannot be reached', error, ctx)
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
