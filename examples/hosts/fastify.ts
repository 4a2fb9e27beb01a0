import type { IncomingMessage, ServerResponse } from 'node:http'
import middie from '@fastify/middie'
import Fastify from 'fastify'
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

/** Fastify, with @fastify/middie: middleware runs before Fastify reads the body. */
export async function fastifyHost({ provider, flows, oauthPath, login }: HostParts) {
  const app = Fastify()
  const oidc = provider.callback()
  await app.register(middie)
  app.use(flows.adminHandler)
  app.use(`${oauthPath}/login`, (req, res, next) => {
    // oxlint-disable-next-line promise/no-callback-in-promise -- so middleware tells of a failure
    login(req, res).catch(next)
  })
  // Last, because the provider answers every path that is left.
  app.use(oauthPath, (req: IncomingMessage, res: ServerResponse) => void oidc(req, res))
  await app.ready()
  return app.routing
}
