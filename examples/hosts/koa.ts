import type { IncomingMessage, ServerResponse } from 'node:http'
import Koa from 'koa'
import mount from 'koa-mount'
import type { Provider } from 'oidc-provider'
import type { AccountFlows } from '../../src/index.ts'

export interface HostParts {
  /** After `flows.attach(provider)`. */
  provider: Provider
  flows: AccountFlows
  /** Path of the issuer, such as `/oauth2`; empty for none. */
  oauthPath: string
  /** Your login page; its POST ends with `flows.finishLogin`. */
  login: (req: IncomingMessage, res: ServerResponse) => Promise<void>
}

/** Koa, with koa-mount below a prefix. */
export function koaHost({ provider, flows, oauthPath, login }: HostParts) {
  const app = new Koa()
  // A mounted provider sees the cookies of this app, so both need the same keys: `cookies.keys` of its configuration.
  app.keys = provider.keys

  app.use(flows.adminApi())
  app.use(async (ctx, next) => {
    if (ctx.path === `${oauthPath}/login`) await login(ctx.req, ctx.res)
    else await next()
  })
  app.use(oauthPath === '' ? mount(provider) : mount(oauthPath, provider))
  return app.callback()
}
