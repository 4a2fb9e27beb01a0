import type { Context, Middleware } from 'koa'

export interface Route {
  get?: Handler
  post?: Handler
}

type Handler = (ctx: Context) => void | Promise<void>

/** Answers these paths, and leaves every other to what comes next. */
export function routes(byPath: Record<string, Route>): Middleware {
  return async (ctx, next) => {
    const route = Object.hasOwn(byPath, ctx.path) ? byPath[ctx.path] : undefined
    if (!route) {
      await next()
      return
    }
    const isGet = ctx.method === 'GET' || ctx.method === 'HEAD'
    const handler = isGet ? route.get : ctx.method === 'POST' ? route.post : undefined
    if (handler) {
      await handler(ctx)
      return
    }
    ctx.set('Allow', [route.get && 'GET, HEAD', route.post && 'POST'].filter(Boolean).join(', '))
    ctx.status = 405
  }
}
