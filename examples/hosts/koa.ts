import Koa from 'koa'
import mount from 'koa-mount'
import type { HostParts } from './host-parts.ts'

/** Koa, with koa-mount below a prefix. */
export function koaHost({ provider, flows, oauthPath, login, changePassword }: HostParts) {
  const app = new Koa()
  // A mounted provider sees the cookies of this app, so both need the same keys: `cookies.keys` of its configuration.
  app.keys = provider.keys

  // Proxies alone are sent anything but a path, and of a target such as `http://[` Koa cannot tell the path.
  app.use((ctx, next) => (ctx.req.url?.startsWith('/') ? next() : ctx.throw(400)))
  app.use(flows.adminApi)
  app.use(flows.wellKnownChangePassword)
  app.use(async (ctx, next) => {
    if (ctx.path === `${oauthPath}/login`) await login(ctx.req, ctx.res)
    else if (ctx.path === `${oauthPath}/change-password`) await changePassword(ctx.req, ctx.res)
    else if (ctx.path === '/') ctx.body = 'Hello'
    else await next()
  })
  // Last, because the provider answers every path that is left.
  app.use(oauthPath === '' ? mount(provider) : mount(oauthPath, provider))
  return app.callback()
}
