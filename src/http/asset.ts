import type { Route } from './routes.ts'

/** A file that our pages load; there are two, the style sheet and the script. */
export function asset(type: 'text/css' | 'text/javascript', text: string): Route {
  return {
    async get(ctx) {
      ctx.set('Cache-Control', 'public, max-age=3600')
      ctx.set('X-Content-Type-Options', 'nosniff')
      ctx.type = `${type}; charset=utf-8`
      ctx.body = text
    },
  }
}
