import { readFileSync } from 'node:fs'
import type { Context } from 'koa'
import type { Paths } from './page.ts'
import type { Route } from './routes.ts'

/** What the pages of the example need beside the style sheet of the flows. */
export function exampleStylesheet({ base }: Paths) {
  const css = readFileSync(new URL('./example.css', import.meta.url), 'utf8')

  function get(ctx: Context) {
    ctx.set('Cache-Control', 'public, max-age=3600')
    ctx.set('X-Content-Type-Options', 'nosniff')
    ctx.type = 'text/css; charset=utf-8'
    ctx.body = css
  }

  return { [`${base}/example.css`]: { get } } satisfies Record<string, Route>
}
