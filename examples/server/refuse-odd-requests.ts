import type { Middleware } from 'koa'

/** No browser sends these, and what comes after is not made for them: a compressed body, and a Host that is no host. */
export const refuseOddRequests: Middleware = async (ctx, next) => {
  const isCompressed = !/^(identity)?$/i.test(ctx.get('Content-Encoding'))
  const isNoHost = !URL.canParse(`http://${ctx.get('Host')}`)
  if (isCompressed || isNoHost) {
    ctx.status = isCompressed ? 415 : 400
    ctx.body = isCompressed ? 'Send the body as it is.\n' : 'The Host header is not an address.\n'
    return
  }
  await next()
}
