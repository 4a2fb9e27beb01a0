import type { IncomingMessage, ServerResponse } from 'node:http'
import express, { type Express } from 'express'
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

/** Express 5. A body parser in front, such as `express.urlencoded()`, is fine: what it made of a form is taken. */
export function expressHost({ provider, flows, oauthPath, login }: HostParts): Express {
  const app = express()
  app.use(flows.adminHandler)
  app.all(`${oauthPath}/login`, login)
  // Last, because the provider answers every path that is left.
  app.use(oauthPath || '/', provider.callback())
  return app
}
