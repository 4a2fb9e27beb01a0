import type { Middleware } from 'koa'
import { html } from './html.ts'
import type { ShowPage } from './page.ts'

/** For what is no page of ours, such as a form of the provider that a script posts; our own pages are stricter. */
const HEADERS = {
  'Content-Security-Policy': "base-uri 'none'; frame-ancestors 'none'; object-src 'none'",
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'X-Robots-Tag': 'noindex',
}

type Words = readonly [mode: string, title: string, advice: string]

const WORDS = new Map<number, Words>([
  [404, ['not_found', 'Page not found', 'Check the address.']],
  [405, ['method_not_allowed', 'This page can’t be used that way', 'Load the page again.']],
  [413, ['body_too_large', 'That’s too much text', 'Go back and shorten what you entered.']],
])
const REFUSED: Words = ['bad_request', 'We can’t read this request', 'Load the page again.']
const FAILED: Words = ['error', 'Something went wrong on our side', 'Try again in a minute.']

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
    const [mode, title, advice] = WORDS.get(status) ?? (status < 500 ? REFUSED : FAILED)
    show(ctx, { name: 'error', mode, title, content: html`<p>${advice}</p>` })
    ctx.status = status
  }
}

function statusOf(error: unknown): number {
  const status: unknown = Reflect.get(Object(error), 'status')
  return typeof status === 'number' && status >= 400 && status < 500 ? status : 500
}
