import type { IncomingMessage, ServerResponse } from 'node:http'
import { getRequestListener, type HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { Hono, type MiddlewareHandler } from 'hono'
import type { HostParts } from './host-parts.ts'

type Handler = (
  req: IncomingMessage,
  res: ServerResponse,
  next: (error?: unknown) => void,
) => unknown

/** A `(req, res, next)` as middleware of Hono on Node: it answers, or the next one does. */
function onNode(handler: Handler): MiddlewareHandler<{ Bindings: HttpBindings }> {
  return async ({ env: { incoming, outgoing } }, next) => {
    const isPassedOn = await new Promise<boolean>((resolve, reject) => {
      outgoing.once('close', () => resolve(false))
      const passOn = (error?: unknown) => (error ? reject(error) : resolve(true))
      Promise.resolve(handler(incoming, outgoing, passOn)).catch(reject)
    })
    return isPassedOn ? next() : RESPONSE_ALREADY_SENT
  }
}

/** Hono, with @hono/node-server. */
export function honoHost({ provider, flows, oauthPath, login, changePassword }: HostParts) {
  const app = new Hono<{ Bindings: HttpBindings }>()
  const oidc = provider.callback()
  app.use(onNode(flows.adminApi), onNode(flows.wellKnownChangePassword))
  app.all(`${oauthPath}/login`, onNode(login))
  app.all(`${oauthPath}/change-password`, onNode(changePassword))
  app.get('/', (c) => c.text('Hello'))
  // Hono strips no prefix from the request of Node. The provider wants it stripped, and the whole address in `originalUrl`.
  app.use(
    `${oauthPath}/*`,
    onNode((req, res) => {
      const { url = '/' } = req
      Object.assign(req, { originalUrl: url, url: url.slice(oauthPath.length) })
      return oidc(req, res)
    }),
  )
  // Or `serve(app)`.
  return getRequestListener(app.fetch)
}
