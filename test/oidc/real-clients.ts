import { existsSync } from 'node:fs'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { decodeJwt, type JWTPayload } from 'jose'
import type { ClientMetadata } from 'oidc-provider'
import { startServer } from '../support/process.ts'
import { freePort, serve } from '../support/serve.ts'
import { install } from '../support/missing.ts'
import { followWithin, type Answer, type UserAgent } from '../support/user-agent.ts'
import {
  authJsClient,
  expressClient,
  LOGOUT_PATH,
  openidClient,
  pageClient,
  passportClient,
  type Registered,
} from './node-clients.ts'

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

function served(make: (registered: Registered) => RequestListener | Promise<RequestListener>) {
  return async (registered: Registered) => {
    const { close } = await serve(await make(registered), registered.port)
    return close
  }
}

const PROGRAM = '/usr/sbin/apache2'

const MODULES = '/usr/lib/apache2/modules'

const NAMES = ['mpm_event', 'authn_core', 'authz_core', 'authz_user', 'dir', 'include']

/** The module, and Apache as a program: Debian starts no server of its own with these. */
async function installApache(): Promise<void> {
  if (!existsSync(`${MODULES}/mod_auth_openidc.so`)) await install(['libapache2-mod-auth-openidc'])
}

/** As a process of its own. Answers how to end it. */
async function startApache(registered: Registered): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'account-flows-apache-'))
  // Its workers are another user.
  await chmod(folder, 0o755)
  await writeFile(join(folder, 'apache.conf'), configuration(folder, registered))
  await writeFile(join(folder, 'index.html'), FRONT_PAGE)
  const args = ['-D', 'FOREGROUND', '-f', join(folder, 'apache.conf')]
  const isUp = () =>
    fetch(`http://127.0.0.1:${registered.port}/`, { redirect: 'manual' }).then(
      () => true,
      () => false,
    )
  const stop = await startServer(PROGRAM, args, isUp)
  return async () => {
    await stop()
    await rm(folder, { recursive: true })
  }
}

const FRONT_PAGE =
  '<main data-page="client" data-mode="signed_in"><!--#echo var="REMOTE_USER" --></main>'

function configuration(folder: string, client: Registered): string {
  const { issuer, port, redirectUri, clientId, clientSecret } = client
  return `
${NAMES.map((name) => `LoadModule ${name}_module ${MODULES}/mod_${name}.so`).join('\n')}
LoadModule auth_openidc_module ${MODULES}/mod_auth_openidc.so
ServerRoot ${folder}
ServerName client.localhost
DefaultRuntimeDir ${folder}
PidFile ${folder}/pid
ErrorLog ${folder}/log
User www-data
Group www-data
Listen 127.0.0.1:${port}
DocumentRoot ${folder}
OIDCProviderMetadataURL ${issuer}/.well-known/openid-configuration
OIDCClientID ${clientId}
OIDCClientSecret ${clientSecret}
OIDCRedirectURI ${redirectUri}
OIDCCryptoPassphrase ${clientSecret}
OIDCScope "openid email"
OIDCPKCEMethod S256
OIDCRemoteUserClaim sub
<Location />
  AuthType openid-connect
  Require valid-user
</Location>
<Directory ${folder}>
  DirectoryIndex index.html
  Options +Includes
  ForceType text/html
  SetOutputFilter INCLUDES
</Directory>
`
}

export const LOGOUT_CLIENTS = {
  'openid-client': openidClient,
  'express-openid-connect': expressClient,
}

export type LogoutClientKind = keyof typeof LOGOUT_CLIENTS

/** A logout token that came to the door. */
export interface ToldToken {
  token: string
  claims: JWTPayload
  /** What the client answered. `undefined`: it has not. */
  status: number | undefined
}

/** What is done with each token on its way. */
interface Door {
  /** Before the client sees it. */
  before?: ((entry: ToldToken) => unknown) | undefined
  /** Once the client has answered, and the provider does not know yet. */
  after?: ((entry: ToldToken) => unknown) | undefined
  /** Answered in place of the client, which sees nothing. */
  answers?: number | undefined
}

export interface LogoutClient extends Awaited<ReturnType<typeof logoutClient>> {}

/** @param more - of its metadata; with another `client_id` there are two of a kind. */
export async function logoutClient(
  kind: LogoutClientKind,
  { client_id: clientId = kind, ...more }: Partial<ClientMetadata> = {},
) {
  const [port, doorPort] = [await freePort(), await freePort()]
  const baseUrl = `http://127.0.0.1:${port}`
  const redirectUri = `${baseUrl}/callback`
  const clientSecret = 'a-secret-of-the-tests-long-enough'
  const metadata: ClientMetadata & { client_id: string } = {
    client_id: clientId,
    client_secret: clientSecret,
    redirect_uris: [redirectUri],
    backchannel_logout_uri: `http://127.0.0.1:${doorPort}/told`,
    ...more,
  }
  const told: ToldToken[] = []
  const door: Door = {}
  const ends: (() => unknown)[] = []

  async function bring(token: string): Promise<number> {
    const body = new URLSearchParams({ logout_token: token })
    return (await fetch(baseUrl + LOGOUT_PATH, { method: 'POST', body })).status
  }

  async function take(req: IncomingMessage, res: ServerResponse) {
    const token = new URLSearchParams(await text(req)).get('logout_token') ?? ''
    const entry: ToldToken = { token, claims: decodeJwt(token), status: undefined }
    told.push(entry)
    await door.before?.(entry)
    entry.status = door.answers ?? (await bring(token))
    await door.after?.(entry)
    res.writeHead(entry.status).end()
  }

  return {
    metadata,
    baseUrl,
    /** Each token that came, also those that were refused. */
    told,
    door,

    /** Once the provider is there. */
    async start(issuer: string): Promise<void> {
      const registered = { issuer, port, baseUrl, redirectUri, clientId, clientSecret }
      ends.push(await served(LOGOUT_CLIENTS[kind])(registered))
      const opened = (req: IncomingMessage, res: ServerResponse) =>
        void take(req, res).catch(() => res.destroy())
      ends.push((await serve(opened, doorPort)).close)
    },
    async stop(): Promise<void> {
      for (const end of ends.splice(0)) await end()
    },
  }
}

/** From its front page to its front page, by the login page where the provider asks for it. Answers the `sub` that it was told. */
export async function signInAt(
  { baseUrl }: LogoutClient,
  agent: UserAgent,
  credentials: { username: string; password: string },
): Promise<string> {
  const everywhere = (answer: Answer) => followWithin(agent, 'http://', answer)
  let page = await everywhere(await agent.get(baseUrl))
  if (page.page === 'login') {
    const { origin, pathname } = new URL(page.url)
    page = await everywhere(await agent.post(origin + pathname, { ...page.hidden, ...credentials }))
  }
  const sub = subOf(page)
  if (sub === undefined) throw new Error(`not signed in: ${page.status} ${page.url} ${page.text}`)
  return sub
}

/** The `sub` that the client has a session of, in this browser. `undefined`: it would lead to the provider. */
export async function signedInAt({ baseUrl }: LogoutClient, agent: UserAgent) {
  return subOf(await agent.get(baseUrl))
}

function subOf({ mode, text: html }: Answer): string | undefined {
  return mode === 'signed_in' ? />([^<]*)</.exec(html)?.[1] : undefined
}
