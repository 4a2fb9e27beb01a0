/**
 * Answers a request of ours inside the provider's own pipeline, in one response.
 *
 * oidc-provider does not document three things used here; a contract test pins them:
 * - the constructor of `provider.Interaction`;
 * - that the resume cookie holds the uid of the interaction;
 * - the route names `resume` and `device_resume`.
 */
import { randomBytes } from 'node:crypto'
import type { Context, Middleware, Next } from 'koa'
import type { Interaction, Provider } from 'oidc-provider'
import type { CapturedRequest } from '../store/logins.ts'
import type { OpenLogin } from './open-login.ts'
import { outcomeOf } from './provider-answers.ts'

/** Long enough, because the one request that makes the record also uses it. */
export const HANDOVER_SECONDS = 60

export interface ReenterParts {
  provider(): Provider
  openLogin: Pick<OpenLogin, 'forget'>
}

/** Sends a request through the provider again, as if the login page had answered with this result. */
export async function resumeRequest(
  parts: ReenterParts,
  ctx: Context,
  next: Next,
  request: Omit<CapturedRequest, 'login'> & { result?: object },
) {
  const { provider } = parts
  const uid = randomBytes(32).toString('base64url')
  const route = request.deviceCode === undefined ? 'resume' : 'device_resume'
  const path = provider().pathFor(route, { uid, mountPath: '' })
  const returnTo = new URL(provider().pathFor(route, { uid }), provider().issuer).href
  const payload = { ...request, returnTo }
  const interaction: Interaction = Reflect.construct(provider().Interaction, [uid, payload])
  await interaction.save(HANDOVER_SECONDS)
  injectCookie(ctx, provider().cookieName('resume'), uid)
  await reenter(parts, ctx, next, path)
}

/** Answers this request as the provider answers a GET of that path. */
export async function reenter({ openLogin }: ReenterParts, ctx: Context, next: Next, path: string) {
  const original: unknown = Reflect.get(ctx.req, 'originalUrl')
  // Frameworks that strip a prefix from `url` keep it here, and the provider builds its addresses from it.
  if (typeof original === 'string') {
    const prefix = original.endsWith(ctx.url) ? original.slice(0, -ctx.url.length) : ''
    Reflect.set(ctx.req, 'originalUrl', prefix + path)
  }
  ctx.url = path
  ctx.method = 'GET'
  await next()
  const { failure, isGone } = outcomeOf(ctx.req)
  if (failure) throw failure
  if (!isGone) openLogin.forget(ctx)
  if (ctx.status === 303) ctx.status = 302
  // The address contains the link, so no referrer may name it. A page that posts a form to the client needs at least an origin.
  ctx.set('Referrer-Policy', ctx.status === 302 ? 'no-referrer' : 'strict-origin')
}

/** Restores address, method and cookies of the request for the host. */
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

/** Adds a cookie to the request, signed as the provider expects. That saves a redirect to ourselves. */
export function injectCookie(ctx: Context, name: string, value: string): void {
  const kept = withoutCookie(ctx.req.headers.cookie, name)
  const pairs = [...kept, `${name}=${value}`]
  // The types lack `keys`.
  const { keys }: { keys?: { sign(data: string): string } } = Object(ctx.cookies)
  if (keys) pairs.push(`${name}.sig=${keys.sign(`${name}=${value}`)}`)
  ctx.req.headers.cookie = pairs.join('; ')
}

export function dropCookie(ctx: Context, name: string): void {
  ctx.req.headers.cookie = withoutCookie(ctx.req.headers.cookie, name).join('; ')
}

function withoutCookie(header: string | undefined, name: string): string[] {
  const pairs = (header ?? '').split(';').map((pair) => pair.trim())
  return pairs.filter(
    (pair) => pair !== '' && !pair.startsWith(`${name}=`) && !pair.startsWith(`${name}.sig=`),
  )
}
