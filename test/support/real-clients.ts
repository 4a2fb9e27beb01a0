import type { RequestListener } from 'node:http'
import type { ClientMetadata } from 'oidc-provider'
import { installApache, startApache } from './apache.ts'
import { freePort } from './free-port.ts'
import {
  authJsClient,
  expressClient,
  openidClient,
  pageClient,
  passportClient,
  type Registered,
} from './node-clients.ts'
import { serve } from './serve.ts'

/** A server of its own, on another site than the provider. */
export interface RealClient {
  baseUrl: string
  metadata: ClientMetadata & { client_id: string }
  /** What to press on its own page before it leads to the provider. `undefined`: it has no such page. */
  button: string | undefined
  /** What stands in the way is thrown as one sentence. */
  install(): Promise<void>
  /** Once the provider is there. Answers how to stop it. */
  start(issuer: string): Promise<() => unknown>
}

interface Kind {
  install?: () => Promise<void>
  start: (registered: Registered) => Promise<() => unknown>
  callback?: string
  button?: string
  isPublic?: boolean
}

const CLIENTS: Record<string, Kind> = {
  'openid-client': { start: served(openidClient) },
  'Auth.js': {
    start: served(authJsClient),
    callback: '/auth/callback/idp',
    button: 'form[action$="/auth/signin/idp"] button',
  },
  'express-openid-connect': { start: served(expressClient) },
  'passport-openidconnect': { start: served(passportClient) },
  'oidc-client-ts': { start: served(pageClient), isPublic: true },
  mod_auth_openidc: { install: installApache, start: startApache },
}

/** One of each. */
export function realClients(): Promise<RealClient[]> {
  return Promise.all(Object.entries(CLIENTS).map(realClient))
}

async function realClient([name, kind]: [string, Kind]): Promise<RealClient> {
  const { install = async () => {}, start, callback = '/callback', button, isPublic = false } = kind
  const port = await freePort()
  const baseUrl = `http://client.localhost:${port}`
  const redirectUri = baseUrl + callback
  const [clientId, clientSecret] = [name, 'a-secret-of-the-tests-long-enough']
  return {
    baseUrl,
    button,
    install,
    metadata: {
      client_id: clientId,
      redirect_uris: [redirectUri],
      ...(isPublic ? { token_endpoint_auth_method: 'none' } : { client_secret: clientSecret }),
    },
    start: (issuer) => start({ issuer, port, baseUrl, redirectUri, clientId, clientSecret }),
  }
}

export function served(
  make: (registered: Registered) => RequestListener | Promise<RequestListener>,
) {
  return async (registered: Registered) => {
    const { close } = await serve(await make(registered), registered.port)
    return close
  }
}
