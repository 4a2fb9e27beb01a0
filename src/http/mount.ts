import type { IncomingMessage, ServerResponse } from 'node:http'
import Koa, { type Context } from 'koa'

/**
 * One function for every host. Koa, Express, Fastify with middie: `app.use(it)`. `node:http`: `it(req, res, next)`. It passes other
 * requests to `next`. Without `next`, it answers them with 404.
 */
export interface Mount {
  (ctx: Context, next: () => Promise<unknown>): unknown
  (req: IncomingMessage, res: ServerResponse, next?: (error?: unknown) => void): void
}

/**
 * @param isOurs - gets the path of the full address, also if a framework has stripped a prefix, and the method.
 * @param onError - gets the error of an answer that broke off. In a Koa app of the host, the app gets the error instead.
 */
export function createMount(
  isOurs: (path: string, method: string | undefined) => boolean,
  answer: (ctx: Context, path: string) => Promise<void>,
  onError: (error: unknown) => void,
): Mount {
  const bare = new Koa()
  bare.use((ctx) => answer(ctx, pathOf(ctx.req, ctx.originalUrl)))
  bare.on('error', onError)
  const listener = bare.callback()

  return (
    first: Context | IncomingMessage,
    second: ServerResponse | (() => Promise<unknown>),
    next?: () => void,
  ): unknown => {
    if ('req' in first && typeof second === 'function') {
      const path = pathOf(first.req, first.originalUrl)
      return isOurs(path, first.method) ? answer(first, path) : second()
    }
    if ('req' in first || typeof second === 'function') throw new TypeError('mount it with app.use')
    if (isOurs(pathOf(first), first.method)) return listener(first, second)
    return next ? next() : second.writeHead(404).end()
  }
}

/** Express and Fastify strip a prefix from `url`, and keep the full address in `originalUrl`. */
export function pathOf(req: IncomingMessage, url = req.url ?? ''): string {
  const original: unknown = Reflect.get(req, 'originalUrl')
  return (typeof original === 'string' ? original : url).replace(/[?#].*/s, '')
}

const PATH = '/.well-known/change-password'

/** @param formUrl - the address of the form that asks for a reset link. */
export function createWellKnown(formUrl: string): Mount {
  return createMount(
    (path, method) => path === PATH && (method === 'GET' || method === 'HEAD'),
    async (ctx) => {
      ctx.status = 302
      ctx.set({ Location: formUrl, 'Cache-Control': 'no-store' })
      ctx.body = ''
    },
    // A browser that broke the connection off needs no redirect.
    () => {},
  )
}
