import type { Route } from './routes.ts'

/** The one file that our pages load. */
export function stylesheet(css: string): Route {
  return {
    async get(ctx) {
      ctx.set('Cache-Control', 'public, max-age=3600')
      ctx.set('X-Content-Type-Options', 'nosniff')
      ctx.type = 'text/css; charset=utf-8'
      ctx.body = css
    },
  }
}
