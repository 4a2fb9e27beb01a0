import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HostParts } from './host-parts.ts'

/** `node:http` alone: whoever strips a prefix leaves the whole address in `req.originalUrl`. */
export function nodeHttpHost({ provider, flows, oauthPath, login, changePassword }: HostParts) {
  const oidc = provider.callback()

  async function route(req: IncomingMessage, res: ServerResponse) {
    const url = req.url ?? '/'
    const [path] = url.split('?')
    if (path === `${oauthPath}/login`) return login(req, res)
    if (path === `${oauthPath}/change-password`) return changePassword(req, res)
    if (path === '/') return res.end('Hello')
    if (!url.startsWith(`${oauthPath}/`)) return res.writeHead(404).end()
    Object.assign(req, { originalUrl: url, url: url.slice(oauthPath.length) })
    return oidc(req, res)
  }

  return (req: IncomingMessage, res: ServerResponse) =>
    flows.adminApi(req, res, () =>
      flows.wellKnownChangePassword(req, res, () => {
        route(req, res).catch(() => {
          if (!res.headersSent) res.writeHead(500)
          res.end()
        })
      }),
    )
}
