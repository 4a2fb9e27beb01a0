import type { HostParts } from './host-parts.ts'

/** oidc-provider is the whole app: what is yours is its middleware. For an issuer without a path. */
export function providerHost({ provider, flows, oauthPath, login, changePassword }: HostParts) {
  provider.use(flows.adminApi)
  provider.use(flows.wellKnownChangePassword)
  provider.use(async (ctx, next) => {
    if (ctx.path === `${oauthPath}/login`) await login(ctx.req, ctx.res)
    else if (ctx.path === `${oauthPath}/change-password`) await changePassword(ctx.req, ctx.res)
    else if (ctx.path === '/') ctx.body = 'Hello'
    else await next()
  })
  // Or `provider.listen(3000)`.
  return provider.callback()
}
