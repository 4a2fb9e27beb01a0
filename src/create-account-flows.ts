import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AdapterConstructor, AdapterFactory, Provider } from 'oidc-provider'
import { attach } from './attach.ts'
import { createAdminApi } from './admin/admin-api.ts'
import { createCore } from './core.ts'
import type { AuditEvents } from './flows/audit.ts'
import { createEndSessions, createPasswordChanged } from './flows/end-sessions.ts'
import { createFlows } from './flows/flows.ts'
import type { Invited } from './flows/invitation.ts'
import { loadBodyReader } from './http/body.ts'
import { createBrowserSide } from './http/browser-side.ts'
import type { Mount } from './http/mount.ts'
import { createWellKnown, type WellKnown } from './http/well-known.ts'
import type { Login } from './http/login.ts'
import { createLoginPassword, forgetTries, type LoginPassword } from './http/login-password.ts'
import type { InteractionPolicy } from './oidc/policy.ts'
import { checkOptions, type AccountFlowsOptions } from './options.ts'
import { createMailPipeline } from './jobs/pipeline.ts'
import type { CarriedParameters, EndedAccount, RefusedNewPassword, User } from './contract/index.ts'
import type { MailOutbox } from './store/index.ts'
import { createMailCheck } from './mail/smtp/check.ts'
import { createRefreshTokens } from './mail/smtp/refresh-tokens.ts'
import { createMailSender } from './mail/smtp/sender.ts'
import { createMaintenance, type Health } from './jobs/maintenance.ts'

/** What `createAccountFlows` answers. */
export interface AccountFlows extends Login, LoginPassword, WellKnown {
  /**
   * The adapter of oidc-provider. It keeps its records in the store of the flows, sealed with the first secret; or in your own adapter,
   * which it wraps. Without it, ended sessions come back to life.
   */
  adapter(yours?: AdapterConstructor | AdapterFactory): AdapterFactory
  /**
   * Adds our checks to an interaction policy, such as `interactionPolicy.base()`, and returns it. If you never call it,
   * `attach` logs a warning; in production it throws a `TypeError`.
   */
  policy(base: InteractionPolicy): InteractionPolicy
  /**
   * Adds our routes. Call it once, before `provider.callback()` and before mounting.
   *
   * @throws TypeError with a sentence that says what to do, where the provider cannot work with these flows.
   */
  attach(provider: Provider): void
  /**
   * Creates collections and indexes, reads the settings, and starts the workers. Call `attach` first. With `workers: false`,
   * other processes send the mails and finish interrupted resets.
   */
  start(options?: { workers?: boolean }): Promise<void>
  /** Takes no more jobs, and waits for running ones: at most `withinMs` milliseconds (10,000 by default). */
  stop(options?: { withinMs?: number }): Promise<void>
  /**
   * Whether this process can serve people now, for a readiness probe. It says nothing about accounts or mails, so it may be
   * public. It answers within 2 seconds and never throws.
   */
  health(): Promise<Health>
  /**
   * The admin API for any host. Koa, Express, Fastify with middie: `app.use(flows.adminApi)`. `node:http`: `flows.adminApi(req,
   * res, next)`. It answers below `adminPath` and passes other requests on.
   */
  adminApi: Mount
  /**
   * Judges a new password as the forms of resets and invitations do: its length, `password_blocklist`, and your `judgePassword`. For
   * your own pages to register or to change a password. With `password_blocklist` it refuses the current password too, which those
   * forms do not compare. A user without `passwordHash` has none.
   *
   * @returns `undefined`: it is good.
   * @throws `ERR_JUDGE_FAILED` if your `judgePassword` throws or is late; `ERR_OVERLOADED` as `verifyPassword`. Answer 503 to both.
   */
  judgePassword(password: string, user: User): Promise<RefusedNewPassword | undefined>
  /**
   * Ends all sessions, grants and tokens of the account, and voids all links mailed to it. Call it when you disable an account:
   * no old link works after you enable it again.
   *
   * A login that begins after this resolves stays valid. A login with the right password that is already running may survive.
   * If others know the password, change it first.
   */
  endSessions(accountId: string): Promise<EndedAccount>
  /**
   * Call it after your own page, or your support tool, replaced a password. It ends everything as `endSessions` does, mails the notice
   * `password_changed` to the account's address, and records `password_changed`. If it throws, call it again: until it resolves, old sessions
   * may live.
   *
   * With `browser`, the session that its request comes with ends too. If it was alive and of this account, the browser gets a new one of the
   * same login, and its cookie is set on `res`. Any other end of the account, just before or after, ends that as well. Where a new
   * session cannot be made, the error is logged, and the person signs in again ([more](passwords.md#the-new-session)).
   *
   * @param browser - request and answer of `node:http`, from a page on which its person just proved to know the password.
   * @throws AccountFlowsError `ERR_NOT_ATTACHED` with `browser` before `attach`.
   */
  passwordChanged(
    accountId: string,
    browser?: { req: IncomingMessage; res: ServerResponse },
  ): Promise<EndedAccount>
  /**
   * Mails a link to an account without a password, with which its owner chooses the first one. That verifies the address too. A later
   * invitation ends the link of an earlier one. The account is looked up by its id, and judged as it is now.
   *
   * @param carried - the client that the page leads on to afterwards: `clientId` and a `redirectUri` that it registered.
   */
  invite(user: User | string, carried?: CarriedParameters): Promise<Invited>
  /** Calls the listeners of `audit`, and of its type, with each `AuditEvent` once it is recorded. It does not wait for them. */
  events: AuditEvents
}

/**
 * Password reset and e-mail verification beside an oidc-provider.
 *
 * @throws TypeError that names the bad option.
 * @example
 * const flows = createAccountFlows({ baseUrl, oauthPath: '/oauth2', secrets, store: mongoStore(db), users: mongoUsers(db.collection('users')) })
 * const provider = new Provider(issuer, { adapter: flows.adapter(), … })
 * flows.attach(provider)
 * await flows.start()
 */
export function createAccountFlows(options: AccountFlowsOptions): AccountFlows {
  const checked = checkOptions(options)
  const core = createCore(checked)
  const { store, users, sessions, policy, events, settings, clock, clientLogouts } = core
  const outbox = wakingOutbox(store.outbox, (at) => mail.wake(at))
  const endSessions = createEndSessions({ ...core, outbox })
  const flows = createFlows({
    ...core,
    outbox,
    endSessions,
    users: core.watchedUsers,
    forgetTries: forgetTries.bind(undefined, core),
  })
  const refreshTokens = createRefreshTokens(core.settingsKeeper, checked.log)
  const sender = createMailSender(settings, clock, refreshTokens, checked.transport)
  const mail = createMailPipeline({ ...core, ...core.clients, users: core.watchedUsers, sender })
  const maintenance = createMaintenance({ ...core, ...flows, mail })
  const browser = createBrowserSide(core, flows, checked)
  const adminParts = {
    ...checked,
    ...core,
    outbox,
    canSend: sender.canSend,
    checkMail: createMailCheck(clock, refreshTokens, checked.transport),
    endSessions,
    invite: flows.invitation.invite,
  }

  return {
    ...browser.login,
    ...createLoginPassword(core, core.verifyPassword),
    judgePassword: core.passwordJudge.judgeAll,
    ...createWellKnown(`${core.oauthUrl}/forgot-password`),
    adapter: sessions.adapter,
    policy: policy.add,
    attach: (provider) => attach(core, browser, provider),

    async start({ workers = true } = {}) {
      if (workers) core.provider()
      // Not with the first request: an import that fails once, because no file is left, fails for ever.
      await Promise.all([loadBodyReader(), import('./admin/router.ts')])
      await store.start()
      await users.start?.()
      await sessions.start()
      await maintenance.start(checked.initialSettings, workers)
      await core.passwordJudge.load()
      if (workers) [mail, clientLogouts].forEach(({ start }) => start())
    },

    async stop({ withinMs = 10_000 } = {}) {
      await Promise.all([maintenance, mail, clientLogouts].map(({ stop }) => stop(withinMs)))
    },

    health: maintenance.health,
    adminApi: createAdminApi(adminParts, `${core.basePath}${checked.adminPath}`),
    events,
    endSessions,
    passwordChanged: createPasswordChanged({ ...core, outbox }),
    invite: (user, carried) => flows.invitation.invite(user, carried),
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
