import type { IncomingMessage } from 'node:http'
import type { Context, Middleware } from 'koa'
import type { AdapterConstructor, AdapterFactory, Provider } from 'oidc-provider'
import { createAdmin } from './admin/parts.ts'
import { createAudit, type AuditEvents } from './flows/audit.ts'
import { createAuthorizeSig } from './crypto/authorize-sig.ts'
import { keyedHash } from './crypto/keyed-hash.ts'
import { createKeyRing } from './crypto/keys.ts'
import { hashQueue } from './crypto/hash-queue.ts'
import { hashPassword } from './crypto/password.ts'
import { createSecretBox } from './crypto/secret-box.ts'
import { createVerifyPassword, type VerifyPassword } from './crypto/verify-password.ts'
import { createEndSessions, type EndedSessions } from './flows/end-sessions.ts'
import { AccountFlowsError } from './errors.ts'
import { createEmailVerification } from './flows/email-verification.ts'
import { createPasswordReset } from './flows/password-reset.ts'
import { createVoidLinks, createVoidEverything, usersWithLinks } from './flows/account.ts'
import { sealedLogins } from './crypto/sealed-logins.ts'
import { createWaitingLogins } from './flows/waiting-login.ts'
import type { NodeHandler } from './admin/api.ts'
import { createBrowserRoutes } from './http/browser-routes.ts'
import { createLogin, type Login } from './http/login.ts'
import { createChangePassword, type ChangePassword } from './http/change-password.ts'
import { createBrowserCookie } from './http/browser-cookie.ts'
import { createPages } from './http/pages.ts'
import { unavailableAnswer } from './http/failure.ts'
import { createResendCooldown } from './http/resend-cooldown.ts'
import { requesterOf } from './http/requester.ts'
import { createOwnKeyRing } from './crypto/key-rings.ts'
import { createMailPipeline } from './outbox/pipeline.ts'
import { createClients } from './oidc/clients.ts'
import { createEndableSessions, type StartableAdapterFactory } from './oidc/endable-sessions.ts'
import { createInteractions } from './oidc/interactions.ts'
import { answeringOutages } from './oidc/outages.ts'
import { createAccountPolicy, type InteractionPolicy } from './oidc/policy.ts'
import { restoreRequest } from './oidc/restore-request.ts'
import { watchAnswers } from './oidc/provider-answers.ts'
import { createResume } from './oidc/resume.ts'
import { onSignOut } from './oidc/sign-out.ts'
import { checkOptions, type AccountFlowsOptions } from './options.ts'
import type { Log, MailOutbox } from './ports/index.ts'
import { createMailCheck } from './smtp/mail-check.ts'
import { createMailSender } from './smtp/sender.ts'
import { createUpkeep } from './upkeep.ts'
import { createSettingsKeeper } from './settings/settings.ts'
import { createViews } from './views/index.ts'

export interface AccountFlows extends Login, ChangePassword {
  /** Wraps any adapter of oidc-provider; without it, ended sessions come back. */
  adapter(adapter: AdapterConstructor | StartableAdapterFactory): AdapterFactory
  /**
   * Adds our checks to an interaction policy, such as `interactionPolicy.base()`, and returns it. Where it was never called,
   * `attach` warns, and throws a `TypeError` in production.
   */
  policy(base: InteractionPolicy): InteractionPolicy
  /** Adds our routes. Call it before `provider.callback()` and before mounting. */
  attach(provider: Provider): void
  /**
   * Creates collections and indexes, reads the settings, and starts the workers, which need `attach` to come first;
   * `workers: false` leaves mails and unfinished resets to other processes.
   */
  start(options?: { workers?: boolean }): Promise<void>
  /** Takes no more jobs and waits for those under way, at most `withinMs` (10,000 by default). */
  stop(options?: { withinMs?: number }): Promise<void>
  /** The admin API as Koa middleware. */
  adminApi(): Middleware
  /** The admin API for Express, Fastify and `node:http`. */
  adminHandler: NodeHandler
  /**
   * Compares a password with `passwordHash` of the user that your login found; `undefined`: it found none. `false` also for a user
   * who is disabled or has no hash that bcrypt reads (`$2a$`, `$2b$`, `$2y$`), and for a password that no reset would take, because
   * bcrypt reads a part of it only: of more than 72 bytes, or with NUL. All of these take the same work. A stored hash may have
   * another cost than `bcryptCost`: the work is that of the highest one, and of one above `bcryptCost` from its first sight on,
   * for everybody. It shares the queue of resets: few run at the same time in a process, and where too many wait, it throws
   * `ERR_OVERLOADED`; answer 503 with `Retry-After`. Limit the posts of your login page yourself.
   */
  verifyPassword: VerifyPassword
  /**
   * Ends everything the account is signed in with, and voids every link that was mailed to it. Call it when you disable an
   * account, so that no link from before works once it is enabled again. A login that begins after it resolves is good. One that is
   * under way with the password of now may outlive it, as one a moment later would: change the password first where that is known to
   * others.
   */
  endSessions(accountId: string): Promise<EndedSessions>
  /** Emits `audit` with each `AuditEvent` once it is recorded. */
  events: AuditEvents
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
  const { baseUrl, oauthPath, secrets, store, users, clock, log, ...checked } =
    checkOptions(options)
  const basePath = baseUrl.pathname.replace(/\/$/, '')
  const oauthUrl = `${baseUrl.origin}${basePath}${oauthPath}`

  let attached: Provider | undefined
  const provider = () => {
    if (!attached) throw new AccountFlowsError('ERR_NOT_ATTACHED', 'Call attach(provider) first')
    return attached
  }

  const keys = createKeyRing(secrets)
  const box = createSecretBox(keys)
  const settingsKeeper = createSettingsKeeper(store.settings, box, log)
  const settings = settingsKeeper.current
  const { record: audit, events } = createAudit(store.audit, () => settings().auditRetention, log)
  const sessions = createEndableSessions(store.cutoffs, users, clock, log, box)
  const policy = createAccountPolicy(users, settings, log)
  const clients = createClients(provider, baseUrl.origin)
  const resume = createResume(provider, clock)
  const authorizeSig = createAuthorizeSig(keys)

  const outbox = wakingOutbox(store.outbox, (at) => mail.wake(at))

  const { resetTokens, verificationTokens } = store
  const pendingLogins = sealedLogins(store.pendingLogins, box)
  const { readCutoffs, noteLogin } = sessions
  const voidLinks = createVoidLinks(store)
  const watched = { users: usersWithLinks(users, voidLinks) }
  const flowParts = {
    ...watched,
    resetTokens,
    verificationTokens,
    pendingLogins,
    outbox,
    sessions,
    readCutoffs,
    hashPassword: (password: string) => hashQueue(() => hashPassword(password, checked.bcryptCost)),
    authorizeSig,
    audit,
    settings,
    clock,
  }
  const passwordReset = createPasswordReset(flowParts)
  const verification = createEmailVerification(flowParts)
  const waitingLogins = createWaitingLogins(flowParts)

  const { viewsDirectory: directory, defaultLocale, trustedProxies } = checked
  const views = createViews(`${basePath}${oauthPath}`, { directory, defaultLocale, log })
  const keyRing = createOwnKeyRing(store.keyRings, keys)
  const shared = { store, users, authorizeSig, keyRing, oauthUrl, views, audit, clock, log }
  const mail = createMailPipeline({
    ...shared,
    ...watched,
    pendingLogins,
    identify: clients.identify,
    settings,
    keys,
    sender: createMailSender(settings, clock, checked.developmentMailer),
  })
  const upkeep = createUpkeep({ ...shared, settings: settingsKeeper, passwordReset, mail })

  const pages = createPages(views)
  const browserCookie = createBrowserCookie(baseUrl.protocol === 'https:')
  const requester = (req: IncomingMessage) => requesterOf(req, trustedProxies)
  const hashed = (text: string) => keyedHash(keys, text)
  const cooldown = createResendCooldown({ limits: store.limits, keyedHash: hashed, settings })
  const http = { settings, audit, clock, log, requesterOf: (ctx: Context) => requester(ctx.req) }
  const routes = createBrowserRoutes({
    ...http,
    passwordReset,
    verification,
    waitingLogins,
    clients,
    resume,
    browserCookie,
    noteLogin,
    pages,
    assets: views,
    cooldown,
    limits: store.limits,
    keyedHash: hashed,
    origin: baseUrl.origin,
    options: checked,
    trustedProxies,
  })
  const endSessions = createEndSessions(
    sessions,
    createVoidEverything(store.outbox, voidLinks),
    clock,
    audit,
  )
  const admin = createAdmin({
    options: { ...checked, secrets },
    ...shared,
    root: `${basePath}/admin/api`,
    settings: settingsKeeper,
    outbox,
    wake: mail.wake,
    checkMail: createMailCheck(clock),
    endSessions,
    keyedHash: hashed,
    requesterOf: requester,
  })

  return {
    ...createLogin({
      users,
      verification,
      interactions: createInteractions(provider),
      clients,
      browserCookie,
      pages,
      cooldown,
      settings,
      requesterOf: requester,
      noteLogin,
      clock,
    }),
    verifyPassword: createVerifyPassword(checked.bcryptCost, hashQueue),
    ...createChangePassword(`${oauthUrl}/forgot-password`),
    adapter: sessions.adapter,
    policy: policy.add,

    attach(host) {
      sessions.expectOurs(host.Session.adapter)
      policy.expectMade()
      warnOfOtherIssuer(host, oauthUrl, log)
      attached = host
      host.use(answeringOutages(unavailableAnswer(pages, log)))
      watchAnswers(host)
      for (const ours of [restoreRequest, sessions.perRequest, routes]) host.use(ours)
      onSignOut(host, (req, res) => browserCookie.read(req) && browserCookie.drop(res))
    },

    async start({ workers = true } = {}) {
      if (workers) provider()
      await store.start()
      await users.start?.()
      await sessions.start()
      await upkeep.start(checked.initialSettings, workers)
      if (workers) mail.start()
    },

    async stop({ withinMs = 10_000 } = {}) {
      await Promise.all([upkeep.stop(withinMs), mail.stop(withinMs)])
    },

    adminApi: () => admin.middleware,
    adminHandler: admin.handler,
    events,

    endSessions,
  }
}

function wakingOutbox(outbox: MailOutbox, wake: (at: Date) => void): Pick<MailOutbox, 'add'> {
  return {
    async add(job) {
      await outbox.add(job)
      wake(job.notBefore)
    },
  }
}

function warnOfOtherIssuer({ issuer }: Provider, oauthUrl: string, log: Log) {
  if (issuer === oauthUrl) return
  log('warn', 'the issuer of the provider is not baseUrl and oauthPath', { issuer })
}
