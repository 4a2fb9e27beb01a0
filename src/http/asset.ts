import type { Asset } from '../views/index.ts'
import type { Route } from './routes.ts'

const YEAR_SECONDS = 31_536_000

/** A file that our pages load; there are two, the style sheet and the script. */
export function asset(type: 'text/css' | 'text/javascript', { text, version }: Asset): Route {
  return {
    async get(ctx) {
      // A page asks for the version that it was made with; another process, older or newer, may answer.
      const isVersion = ctx.querystring === `v=${version}`
      ctx.set(
        'Cache-Control',
        isVersion ? `public, max-age=${YEAR_SECONDS}, immutable` : 'no-cache',
      )
      ctx.set('X-Content-Type-Options', 'nosniff')
      ctx.status = 200
      ctx.type = `${type}; charset=utf-8`
      ctx.etag = version
      if (ctx.fresh) ctx.status = 304
      else ctx.body = text
    },
  }
}
