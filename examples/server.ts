/**
 * What `npm start` runs: a provider with the account flows, a login page, a client to sign in to, and a mailbox. No set-up is
 * needed; README and docs tell the environment variables.
 *
 * @module
 */
import { logFailure } from './server/logging.ts' // first: what the others say while they are loaded is a line too
import { randomBytes } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import Koa from 'koa'
import mount from 'koa-mount'
import { Provider } from 'oidc-provider'
import { createAccountFlows, memoryMailbox, type Brand } from '../src/index.ts'
import { changePasswordPage } from './server/change-password-page.ts'
import { demoClient } from './server/demo-client.ts'
import { readEnvironment, reasonOf, StartRefused } from './server/environment.ts'
import { errorPages, unavailablePage } from './server/error-pages.ts'
import { homePage } from './server/home-page.ts'
import { checkoutSigningKeys, derivedKey } from './server/keys.ts'
import { loginPage } from './server/login-page.ts'
import { mailboxPage } from './server/mailbox-page.ts'
import { createShowPage, exampleFiles } from './server/page.ts'
import { createPasswordCheck } from './server/password-check.ts'
import { providerConfiguration } from './server/provider-configuration.ts'
import { refuseOddRequests, refuseOtherHosts, routes } from './server/requests.ts'
import { insertSeed, readSeed, readSettings } from './server/seed.ts'
import { exitOnSignals, serve } from './server/serve.ts'
import { openStorage } from './server/open-storage.ts'

async function start() {
  const stopEarly = exitOnSignals()
  const environment = readEnvironment(process.env)
  const { host, port, baseUrl, oauthPath, bcryptCost, trustedProxies } = environment
  const seed = await readSeed(environment.seedFile, baseUrl)
  const settings = environment.settingsFile ? await readSettings(environment.settingsFile) : {}
  const signingKeys = environment.signingKeys ?? (await checkoutSigningKeys())
  const adminToken = environment.adminToken ?? randomBytes(32).toString('base64url')

  const storage = await openStorage(environment, signingKeys)
  const mailbox = environment.hasMailbox ? memoryMailbox() : undefined

  // A theme brings its own.
  const brand = environment.viewsDirectory === undefined ? acme(baseUrl) : {}
  const flows = createAccountFlows({
    baseUrl,
    oauthPath,
    secrets: signingKeys,
    store: storage.store,
    users: storage.users,
    adminToken,
    bcryptCost,
    responseDelay: environment.responseDelay,
    trustedProxies,
    initialSettings: settings,
    viewsDirectory: environment.viewsDirectory,
    brand,
    clientLogout: { allowPrivateNetworks: !environment.isProduction },
    ...(mailbox && { transport: mailbox }),
  })

  const issuer = `${baseUrl}${oauthPath}`
  const basePath = new URL(baseUrl).pathname.replace(/\/$/, '')
  const paths = { base: basePath, oauth: `${basePath}${oauthPath}` }
  const show = createShowPage(paths, brand)
  const cookieKeys = signingKeys.map((key) =>
    Buffer.from(derivedKey(key, 'cookies')).toString('base64url'),
  )

  const adapter = flows.adapter()
  const provider = new Provider(
    issuer,
    providerConfiguration({ flows, adapter, storage, cookieKeys, paths, show }),
  )
  flows.attach(provider)
  stopEarly.work = () => flows.stop({ withinMs: 5_000 })
  await flows.start()
  await insertSeed(seed, { storage, clients: adapter('Client'), provider, bcryptCost })

  const parts = { baseUrl, show, paths }
  const noTimeLeft = new AbortController()
  // One listener for each request in flight.
  setMaxListeners(0, noTimeLeft.signal)
  const app = new Koa({ keys: cookieKeys })
  // Our addresses come from the configuration, whatever a request or a proxy says. So cookies are `Secure` where it says https.
  const own = new URL(baseUrl)
  for (const { request } of [app, provider]) {
    Object.defineProperty(request, 'protocol', { value: own.protocol.replace(':', '') })
    Object.defineProperty(request, 'host', { value: own.host })
  }
  app.on('error', (error: unknown, ctx: Koa.Context) => {
    if (!isAboutClient(error, ctx)) logFailure('request failed', error, ctx)
  })
  provider.on('server_error', (ctx, error) => logFailure('the provider failed', error, ctx))
  app.use(errorPages(show))
  app.use(refuseOddRequests)
  app.use(refuseOtherHosts(baseUrl, { port, behindProxy: trustedProxies > 0 }))
  app.use(unavailablePage(show, noTimeLeft.signal))
  app.use(flows.adminApi)
  app.use(flows.wellKnownChangePassword)
  app.use(
    routes({
      ...exampleFiles(paths),
      ...homePage({
        ...parts,
        isDemo: environment.isShippedSeed,
        hasMailbox: mailbox !== undefined,
        // A token that somebody chose stays theirs.
        shellToken:
          environment.adminToken !== undefined
            ? '"$ADMIN_TOKEN"'
            : environment.isPlayground
              ? adminToken
              : undefined,
        requiresVerification: settings['require_email_verification'] === 'true',
        provider,
      }),
      ...loginPage({
        flows,
        provider,
        checkPassword: createPasswordCheck(storage.users, flows),
        show,
        paths,
      }),
      ...changePasswordPage({ flows, provider, users: storage.users, bcryptCost, show, paths }),
      ...demoClient({ ...parts, issuer, place: { host, port } }),
      ...(mailbox && mailboxPage({ ...parts, messages: mailbox.messages })),
    }),
  )
  app.use(mount(paths.oauth || '/', provider))

  await serve(
    app,
    { host, port },
    {
      stopWork: flows.stop,
      answerRest: () => noTimeLeft.abort(),
      release: storage.close,
    },
  )
  stopEarly.end()
  console.log(`Open ${baseUrl}/`)
  if (environment.adminToken === undefined) console.log(`Admin token: ${adminToken}`)
  console.log(`READY ${baseUrl}`)
}

/** Whose service it is. */
function acme(baseUrl: string): Brand {
  return {
    name: 'Acme',
    colour: '#4f46e5',
    signInUrl: `${baseUrl}/`,
    supportUrl: 'mailto:help@acme.example',
  }
}

/** The flows know their options; the operator knows environment variables. */
function asRefusal(error: unknown): unknown {
  const [, option, problem] =
    /^(initialSettings|viewsDirectory):? (.*)$/s.exec(reasonOf(error)) ?? []
  const variable = option === 'viewsDirectory' ? 'VIEWS_DIRECTORY' : 'SETTINGS_FILE'
  return problem === undefined ? error : new StartRefused(`${variable}: ${problem}.`)
}

/** The client is told, unless it broke the connection, with a body cut off for example; nobody here can mend it. */
function isAboutClient(error: unknown, ctx: Koa.Context): boolean {
  const { expose, status }: { expose?: unknown; status?: unknown } = Object(error)
  return expose === true || status === 404 || error === ctx.req.socket.errored
}

try {
  await start()
} catch (thrown) {
  const error = asRefusal(thrown)
  const isRefused = error instanceof StartRefused
  if (isRefused) process.stderr.write(`${error.message}\n`)
  else logFailure('the server cannot start', error)
  process.exit(isRefused ? 2 : 1)
}
