import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Provider } from 'oidc-provider'
import type { AccountFlows } from '../../src/index.ts'

export interface HostParts {
  /** After `flows.attach(provider)`. */
  provider: Provider
  flows: AccountFlows
  /** Path of the issuer, such as `/oauth2`. */
  oauthPath: string
  /** Your login page; its POST ends with `flows.finishLogin`. */
  login: (req: IncomingMessage, res: ServerResponse) => Promise<void>
}

/** `node:http` alone: whoever strips a prefix leaves the whole address in `req.originalUrl`. */
export function nodeHttpHost({ provider, flows, oauthPath, login }: HostParts) {
  const oidc = provider.callback()

  function route(req: IncomingMessage, res: ServerResponse) {
    const url = req.url ?? '/'
    if (url.split('?')[0] === `${oauthPath}/login`) {
      login(req, res).catch(() => {
        if (!res.headersSent) res.writeHead(500)
        res.end()
      })
    } else if (url.startsWith(`${oauthPath}/`)) {
      Object.assign(req, { originalUrl: url, url: url.slice(oauthPath.length) })
      void oidc(req, res)
    } else {
      res.writeHead(404).end()
    }
  }

  return (req: IncomingMessage, res: ServerResponse) =>
    flows.adminHandler(req, res, () => route(req, res))
}
