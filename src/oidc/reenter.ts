/**
 * Answers a request of ours inside the provider's own pipeline, in one response.
 *
 * oidc-provider does not document three things used here; a contract test pins them:
 * - the constructor of `provider.Interaction`;
 * - that the resume cookie holds the uid of the interaction;
 * - the route names `resume` and `device_resume`.
 */
import { randomBytes } from 'node:crypto'
import type { Context, Next } from 'koa'
import type { Interaction, Provider } from 'oidc-provider'
import type { CapturedRequest } from '../ports/index.ts'
import type { OpenLogin } from './open-login.ts'
import { rethrowFailure, wasGone } from './provider-answers.ts'
import { injectCookie } from './request-cookies.ts'

/** The record only has to live for the one request that makes and uses it. */
export const HANDOVER_SECONDS = 60

export interface ReenterParts {
  provider: () => Provider
  openLogin: Pick<OpenLogin, 'forget'>
}

/** Sends a request through the provider again, as after a page of its host that had this result. */
export async function reopen(
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
  await saveInteraction(provider(), uid, { ...request, returnTo })
  injectCookie(ctx, provider().cookieName('resume'), uid)
  await reenter(parts, ctx, next, path)
}

async function saveInteraction(provider: Provider, uid: string, payload: object): Promise<void> {
  const Interaction: unknown = provider.Interaction
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- its constructor is not typed
  const create = Interaction as new (uid: string, payload: object) => Interaction
  await new create(uid, payload).save(HANDOVER_SECONDS)
}

/** Answers this request as the provider answers a GET of that path. */
export async function reenter({ openLogin }: ReenterParts, ctx: Context, next: Next, path: string) {
  const original: unknown = Reflect.get(ctx.req, 'originalUrl')
  // Frameworks that strip a prefix keep it here, and the provider builds its addresses from it.
  if (typeof original === 'string') {
    const prefix = original.endsWith(ctx.url) ? original.slice(0, -ctx.url.length) : ''
    Reflect.set(ctx.req, 'originalUrl', prefix + path)
  }
  ctx.url = path
  ctx.method = 'GET'
  await next()
  // The provider has answered then as well, and finished nothing.
  rethrowFailure(ctx.req)
  if (!wasGone(ctx.req)) openLogin.forget(ctx)
  if (ctx.status === 303) ctx.status = 302
  // The link is in the address of this answer. A form that posts itself to the client says at least where it comes from.
  ctx.set('Referrer-Policy', ctx.status === 302 ? 'no-referrer' : 'strict-origin')
}
