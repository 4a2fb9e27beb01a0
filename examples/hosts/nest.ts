import { NestFactory } from '@nestjs/core'
import type { NestExpressApplication } from '@nestjs/platform-express'
import type { Express } from 'express'
import type { HostParts } from './host-parts.ts'

/** Yours, with its controllers. */
// oxlint-disable-next-line typescript/no-extraneous-class -- this one has none
class AppModule {}

/** NestJS on Express, as in `main.ts`. What `app.use` mounts comes before Nest's own parsers, guards and controllers. */
export async function nestHost({ provider, flows, oauthPath, login, changePassword }: HostParts) {
  const app = await NestFactory.create<NestExpressApplication>(
    { module: AppModule },
    { logger: ['error', 'warn'] },
  )
  const express: Express = app.getHttpAdapter().getInstance()
  app.use(flows.adminApi, flows.wellKnownChangePassword)
  app.use(`${oauthPath}/login`, login)
  app.use(`${oauthPath}/change-password`, changePassword)
  // Without a prefix the provider answers every path, also those of your controllers: give it one.
  app.use(oauthPath, provider.callback())
  express.get('/', (_req, res) => {
    res.send('Hello')
  })
  // Or `await app.listen(3000)`.
  await app.init()
  return express
}
