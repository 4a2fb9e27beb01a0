import type { Middleware } from 'koa'

/** Hands the request back to the host as it came, whatever a resumption had to make of it. */
export const restoreRequest: Middleware = async (ctx, next) => {
  const { url, method } = ctx
  const { cookie } = ctx.req.headers
  const original: unknown = Reflect.get(ctx.req, 'originalUrl')
  try {
    await next()
  } finally {
    ctx.url = url
    ctx.method = method
    if (cookie === undefined) delete ctx.req.headers.cookie
    else ctx.req.headers.cookie = cookie
    if (original !== undefined) Reflect.set(ctx.req, 'originalUrl', original)
  }
}
