import type { Asset } from '../views/index.ts'
import type { Route } from './routes.ts'

/** A file that our pages load: the style sheet, the script or the icon. */
export function asset(type: string, { text, version }: Asset): Route {
  return {
    async get(ctx) {
      // A page asks for the version that it was made with; another process, older or newer, may answer.
      const isVersion = ctx.querystring === `v=${version}`
      const kept = isVersion ? 'public, max-age=31536000, immutable' : 'no-cache'
      ctx.set({ 'Cache-Control': kept, 'X-Content-Type-Options': 'nosniff' })
      ctx.status = 200
      ctx.type = `${type}; charset=utf-8`
      ctx.etag = version
      if (ctx.fresh) ctx.status = 304
      else ctx.body = text
    },
  }
}
