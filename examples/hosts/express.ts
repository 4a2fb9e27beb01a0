import express, { type Express } from 'express'
import type { HostParts } from './host-parts.ts'

/** Express 5. A body parser in front, such as `express.urlencoded()`, is fine: what it made of a form is taken. */
export function expressHost({
  provider,
  flows,
  oauthPath,
  login,
  changePassword,
}: HostParts): Express {
  const app = express()
  app.use(flows.adminApi, flows.wellKnownChangePassword)
  app.all(`${oauthPath}/login`, login)
  app.all(`${oauthPath}/change-password`, changePassword)
  app.get('/', (_req, res) => {
    res.send('Hello')
  })
  // Last, because the provider answers every path that is left.
  app.use(oauthPath || '/', provider.callback())
  return app
}
