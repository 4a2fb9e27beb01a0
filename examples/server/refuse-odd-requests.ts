import type { Middleware } from 'koa'

/** No browser sends these, and what comes after is not made for them: a compressed body, a Host or a target that is no address. */
export const refuseOddRequests: Middleware = async (ctx, next) => {
  const isCompressed = !/^(identity)?$/i.test(ctx.get('Content-Encoding'))
  const isNoHost = !URL.canParse(`http://${ctx.get('Host')}`)
  // Proxies alone are sent anything else, and of a target such as `http://[` Koa cannot tell the path.
  const isNoPath = !ctx.req.url?.startsWith('/')
  if (isCompressed) ctx.throw(415, 'Send the body as it is.')
  if (isNoHost) ctx.throw(400, 'The Host header is not an address.')
  if (isNoPath) ctx.throw(400, 'Send the path alone.')
  await next()
}
