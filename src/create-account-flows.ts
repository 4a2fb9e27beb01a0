import { EventEmitter } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { Middleware } from 'koa'
import type { AdapterConstructor, AdapterFactory, Provider } from 'oidc-provider'
import { createAuthorizeSig } from './crypto/authorize-sig.ts'
import { createBearerCheck } from './crypto/bearer-token.ts'
import { createKeyRing } from './crypto/keys.ts'
import { hashPassword } from './crypto/password.ts'
import { createSecretBox } from './crypto/secret-box.ts'
import { newId } from './crypto/token.ts'
import { AccountFlowsError } from './errors.ts'
import { createEmailVerification } from './flows/email-verification.ts'
import { createPasswordReset } from './flows/password-reset.ts'
import { createAdminApi, type NodeHandler } from './http/admin-api.ts'
import { adminSettings } from './http/admin-settings.ts'
import { browserRoutes } from './http/browser-routes.ts'
import { createLogin, type Login } from './http/login.ts'
import { createPages } from './http/pages.ts'
import { requesterOf } from './http/requester.ts'
import { createRoutes } from './http/routes.ts'
import { secondAfter } from './login-second.ts'
import { createMailPipeline } from './mail-pipeline.ts'
import { createClients } from './oidc/clients.ts'
import {
  createEndableSessions,
  type EndedCount,
  type StartableAdapterFactory,
} from './oidc/endable-sessions.ts'
import { createInteractions } from './oidc/interactions.ts'
import { addAccountChecks, type InteractionPolicy } from './oidc/policy.ts'
import { restoreRequest } from './oidc/restore-request.ts'
import { createResume } from './oidc/resume.ts'
import { checkOptions, type AccountFlowsOptions } from './options.ts'
import type { AuditEvent } from './ports.ts'
import { createUpkeep } from './upkeep.ts'
import { createSettingsKeeper } from './settings/settings.ts'
import { createViews } from './views.ts'

export interface EndedSessions {
  /** Grants, codes and tokens that were deleted. `undefined`: the adapter cannot tell; they are dead all the same. */
  oauth: EndedCount
  /** Sessions and login results that were deleted. */
  idp: EndedCount
}

export interface AccountFlows extends Login {
  /** Wraps any adapter of oidc-provider; without it, ended sessions come back (D9). */
  adapter(adapter: AdapterConstructor | StartableAdapterFactory): AdapterFactory
  /** Adds our checks to an interaction policy, such as `interactionPolicy.base()`, and returns it (D18). */
  policy(base: InteractionPolicy): InteractionPolicy
  /** Adds our routes. Call it before `provider.callback()` and before mounting. */
  attach(provider: Provider): void
  /**
   * Creates collections and indexes, reads the settings, and starts the workers; `workers: false` leaves mails and unfinished
   * resets to other processes.
   */
  start(options?: { workers?: boolean }): Promise<void>
  /** Takes no more jobs and waits for those under way, at most `withinMs` (10,000 by default). */
  stop(options?: { withinMs?: number }): Promise<void>
  /** The admin API as Koa middleware. */
  adminApi(): Middleware
  /** The admin API for Express, Fastify and `node:http`. */
  adminHandler: NodeHandler
  /** Ends everything the account is signed in with; a login that begins after it resolves is good (D10). */
  endSessions(accountId: string): Promise<EndedSessions>
  /** Emits `audit` with each `AuditEvent` once it is recorded. */
  events: EventEmitter<{ audit: [AuditEvent] }>
}

/**
 * Password reset and e-mail verification beside an oidc-provider.
 *
 * @throws TypeError naming the option that is not acceptable.
 * @example
 * const flows = createAccountFlows({ baseUrl, oauthPath: '/oauth2', secrets, store: mongoStore(db), users: mongoUsers(db.collection('users')) })
 * const provider = new Provider(issuer, { adapter: flows.adapter(mongoAdapter(db)), … })
 * flows.attach(provider)
 * await flows.start()
 */
export function createAccountFlows(options: AccountFlowsOptions): AccountFlows {
  const { baseUrl, oauthPath, secrets, store, users, log, ...checked } = checkOptions(options)
  const basePath = baseUrl.pathname.replace(/\/$/, '')
  const oauthUrl = `${baseUrl.origin}${basePath}${oauthPath}`
  const now = () => new Date()

  let attached: Provider | undefined
  const provider = () => {
    if (!attached) throw new AccountFlowsError('ERR_NOT_STARTED', 'attach(provider) comes first')
    return attached
  }

  const keys = createKeyRing(secrets)
  const settingsKeeper = createSettingsKeeper(store.settings, createSecretBox(keys), log)
  const settings = settingsKeeper.current
  const events: AccountFlows['events'] = new EventEmitter()
  async function audit(event: AuditEvent) {
    if (await store.audit.record(event)) events.emit('audit', event)
  }

  const sessions = createEndableSessions(store.cutoffs)
  const clients = createClients(provider)
  const resume = createResume(provider)
  const { genuine } = clients

  const passwordReset = createPasswordReset({
    users,
    resetTokens: store.resetTokens,
    outbox: store.outbox,
    sessions,
    genuine,
    hashPassword: (password) => hashPassword(password, checked.bcryptCost),
    audit,
    settings,
    oauthUrl,
    now,
  })
  const verification = createEmailVerification({
    users,
    verificationTokens: store.verificationTokens,
    pendingLogins: store.pendingLogins,
    readCutoffs: sessions.readCutoffs,
    outbox: store.outbox,
    authorizeSig: createAuthorizeSig(keys),
    genuine,
    audit,
    settings,
    oauthUrl,
    now,
  })

  const views = createViews(`${basePath}${oauthPath}`)
  const mail = createMailPipeline({
    flows: { password_reset: passwordReset, email_verification: verification },
    store,
    views,
    settings,
    audit,
    keys,
    developmentMailer: checked.developmentMailer,
    log,
  })
  const upkeep = createUpkeep({ settings: settingsKeeper, passwordReset, store, log })

  const pages = createPages(views)
  const requester = (req: IncomingMessage) => requesterOf(req, checked.trustedProxies)
  const routes = createRoutes({
    routes: browserRoutes({
      passwordReset,
      verification,
      clients,
      resume,
      pages,
      settings,
      stylesheet: views.stylesheet,
      delay: checked.responseDelay,
      requesterOf: (ctx) => requester(ctx.req),
    }),
    pages,
    origin: baseUrl.origin,
    log,
  })
  const admin = createAdminApi(
    `${basePath}/admin/api`,
    {
      '/settings': adminSettings({
        settings: settingsKeeper,
        isAdmin: createBearerCheck(checked.adminToken),
        audit,
        requesterOf: (ctx) => requester(ctx.req),
      }),
    },
    log,
  )

  return {
    ...createLogin({
      users,
      verification,
      interactions: createInteractions(provider),
      pages,
      settings,
      requesterOf: requester,
    }),
    adapter: sessions.adapter,
    policy: (base) => addAccountChecks(base, users, settings),

    attach(host) {
      if (!sessions.isOurs(host.Session.adapter)) {
        throw new TypeError(
          'adapter of the provider must be flows.adapter(…); memoryAdapter() is the embedded one to wrap',
        )
      }
      attached = host
      host.use(restoreRequest)
      host.use(sessions.perRequest)
      host.use(routes)
    },

    async start({ workers = true } = {}) {
      await store.start()
      await users.start?.()
      await sessions.start()
      await upkeep.start(checked.initialSettings, workers)
      if (workers) mail.start()
    },

    async stop({ withinMs = 10_000 } = {}) {
      upkeep.stop()
      await mail.stop(withinMs)
    },

    adminApi: () => admin.middleware,
    adminHandler: admin.handler,
    events,

    async endSessions(accountId) {
      const at = now()
      const oauth = await sessions.endOAuthSessions(accountId, at)
      const idp = await sessions.endIdpSessions(accountId, at)
      await audit({ id: newId(), type: 'sessions_ended', at, accountId, details: { oauth, idp } })
      await secondAfter(at)
      return { oauth, idp }
    },
  }
}
