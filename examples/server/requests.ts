import type { Context, Middleware } from 'koa'
import { koaBody } from 'koa-body'

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

/**
 * Answers 421 unless every host that the request names is that of the base URL. Otherwise any site could lead its own name to this
 * machine, and read our pages in the browser of whoever visits it (DNS rebinding). Our own port counts too: several processes may
 * share a base URL.
 */
export function refuseOtherHosts(
  baseUrl: string,
  { port, behindProxy }: { port: number; behindProxy: boolean },
): Middleware {
  const { protocol, host, hostname } = new URL(baseUrl)
  const ours = new Set([host, `${hostname}:${port}`])
  if (host === hostname) ours.add(`${host}:${protocol === 'https:' ? 443 : 80}`)
  return async (ctx, next) => {
    const { host: named = [''], 'x-forwarded-host': forwarded = [] } = ctx.req.headersDistinct
    const all = behindProxy ? [...named, ...forwarded.flatMap((list) => list.split(','))] : named
    if (all.every((each) => ours.has(each.trim().toLowerCase()))) {
      await next()
      return
    }
    ctx.status = 421
    ctx.set('Cache-Control', 'no-store')
    ctx.body = `This server answers at ${baseUrl} alone.\n`
  }
}

/**
 * Whether a page of another site posted a form: somebody would sign the victim in to an account of theirs. Our own pages send
 * `Origin: null`, because they send no referrer; a client that sends neither header is no browser.
 */
export function isCrossSite(ctx: Context, baseUrl: string): boolean {
  const site = ctx.get('Sec-Fetch-Site')
  if (!['', 'same-origin', 'none'].includes(site)) return true
  const origin = ctx.get('Origin')
  if (origin === '' || origin === new URL(baseUrl).origin) return false
  return !(origin === 'null' && site === 'same-origin')
}

const parse = koaBody({
  json: false,
  text: false,
  urlencoded: true,
  formLimit: '64kb',
  patchNode: false,
})

/** The fields of a posted form; what is repeated or nested counts as absent. */
export async function readForm(ctx: Context): Promise<(name: string) => string | undefined> {
  await parse(ctx, async () => {})
  const body: unknown = ctx.request.body
  const fields = new Map<string, unknown>(Object.entries(body ?? {}))
  return (name) => {
    const value = fields.get(name)
    return typeof value === 'string' ? value : undefined
  }
}
