import type { IncomingMessage, ServerResponse } from 'node:http'
import middie from '@fastify/middie'
import Fastify from 'fastify'
import type { HostParts } from './host-parts.ts'
import type { Page } from './page.ts'

/** Fastify, with @fastify/middie: middleware runs before Fastify reads the body. */
export async function fastifyHost({
  provider,
  flows,
  oauthPath,
  login,
  changePassword,
}: HostParts) {
  const app = Fastify()
  const oidc = provider.callback()
  await app.register(middie)
  app.use(flows.adminApi)
  app.use(flows.wellKnownChangePassword)
  const page =
    (answer: Page) =>
    (req: IncomingMessage, res: ServerResponse, next: (error?: unknown) => void) => {
      // oxlint-disable-next-line promise/no-callback-in-promise -- so middleware tells of a failure
      answer(req, res).catch(next)
    }
  app.use(`${oauthPath}/login`, page(login))
  app.use(`${oauthPath}/change-password`, page(changePassword))
  // Without a prefix the provider answers every path, also those of your routes: give it one.
  app.use(oauthPath, (req: IncomingMessage, res: ServerResponse) => void oidc(req, res))
  app.get('/', () => 'Hello')
  await app.ready()
  return app.routing
}
