import type { Middleware } from 'koa'
import { html } from './html.ts'
import type { ShowPage } from './page.ts'

/** While the database cannot be reached, the pages of the example say so, to everybody alike. */
export function unavailablePage(show: ShowPage): Middleware {
  return async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      if (Reflect.get(Object(error), 'code') !== 'ERR_STORE_UNAVAILABLE') throw error
      console.error(`${ctx.method} ${ctx.path}: the database cannot be reached`)
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
  }
}
