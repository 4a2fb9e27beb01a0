import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AdapterConstructor, AdapterFactory, Provider } from 'oidc-provider'
import type { RequestParameters, EndedAccount, RefusedNewPassword, User } from './contract/index.ts'
import type { AuditEvents } from './flows/audit.ts'
import type { ChangedEmail, Invited } from './flows/for-hosts.ts'
import type { Login } from './http/login.ts'
import type { LoginPassword } from './http/login-password.ts'
import type { Mount } from './http/mount.ts'
import type { Health } from './jobs/maintenance.ts'
import type { InteractionPolicy } from './oidc/interactions.ts'

/** What `createAccountFlows` returns. */
export interface AccountFlows extends Login, LoginPassword {
  /**
   * The adapter for oidc-provider. It keeps the provider's records in the store of the flows, sealed with the first secret. With `yours`,
   * it wraps your adapter, which keeps them instead. Without this adapter, ended sessions come back to life.
   */
  adapter(yours?: AdapterConstructor | AdapterFactory): AdapterFactory
  /** Adds our checks to a policy, such as `interactionPolicy.base()`. If you never call it, `attach` warns; in production it throws. */
  policy(base: InteractionPolicy): InteractionPolicy
  /**
   * Adds our routes. Call it once, before `provider.callback()` and before mounting.
   *
   * @throws TypeError if the provider cannot work with these flows. The message says what to do.
   */
  attach(provider: Provider): void
  /**
   * Creates collections and indexes, reads the settings, and starts the workers. Call `attach` first. With `workers: false`, other
   * processes send the mails and finish interrupted resets.
   */
  start(options?: { workers?: boolean }): Promise<void>
  /** Takes no more jobs, and waits for running ones: at most `withinMs` milliseconds (10,000 by default). */
  stop(options?: { withinMs?: number }): Promise<void>
  /** Whether this process can serve people now, for a readiness probe. It may be public. It answers within 2 seconds and never throws. */
  health(): Promise<Health>
  /**
   * The admin API for any host. Koa, Express, Fastify with middie: `app.use(flows.adminApi)`. `node:http`: `flows.adminApi(req, res,
   * next)`. It answers below `adminPath` and passes other requests on.
   */
  adminApi: Mount
  /**
   * Redirects `/.well-known/change-password`, at the root of the origin, to the forgot-password form, for password managers (W3C). Mount it
   * like `adminApi`; it passes other requests on.
   */
  wellKnownChangePassword: Mount
  /**
   * Checks a new password like the forms of resets and invitations: its length, `password_blocklist`, and your `validatePassword`. Call it
   * from your own pages to register or to change a password. With `password_blocklist` it also refuses the current password, which those
   * forms do not compare. A user without `passwordHash` has no current password.
   *
   * @returns `undefined`: the password is good.
   * @throws `ERR_VALIDATOR_FAILED` if your `validatePassword` throws or is late; `ERR_OVERLOADED` if too many wait. Answer 503 to both.
   */
  validatePassword(password: string, user: User): Promise<RefusedNewPassword | undefined>
  /**
   * Ends all sessions, grants and tokens of the account, and voids all links mailed to it. Call it when you disable an account: no old link
   * works after you enable it again.
   *
   * Logins that begin after this call has returned are not ended. One that is running meanwhile, with the right password, may survive. If
   * others know the password, change it first.
   */
  endSessions(accountId: string): Promise<EndedAccount>
  /**
   * Call it after your own page, or your support tool, replaced a password. It ends everything as `endSessions` does, mails the notice
   * `password_changed` to the account's address, and records `password_changed`. If it throws, call it again: until it resolves, old
   * sessions may live.
   *
   * With `browser`, the session of its request ends too. If that session was alive and of this account, the browser gets a new one of the
   * same login: `res` sets its cookie. If anything else ends the account's sessions at the same time, the new session ends too. If no new
   * session can be made, the error is logged, and the person signs in again ([more](passwords.md#the-new-session)).
   *
   * @param browser - request and answer of `node:http`, from a page on which the person just proved to know the password.
   * @throws AccountFlowsError `ERR_NOT_ATTACHED` with `browser` before `attach`.
   */
  passwordChanged(
    accountId: string,
    browser?: { req: IncomingMessage; res: ServerResponse },
  ): Promise<EndedAccount>
  /**
   * Mails a link to an account without a password. With it, the owner chooses the first password, which also verifies the address. A later
   * invitation ends the link of an earlier one. The account is looked up by its id, and checked as it is now.
   *
   * @param parameters - the client that the page leads to afterwards: its `clientId` and a `redirectUri` that it registered.
   */
  invite(user: User | string, parameters?: RequestParameters): Promise<Invited>
  /**
   * Asks for a verification mail to the address of an account, after a sign-up on your own page. For every id it does the same work and
   * answers the same, whether or not there is such an account. A worker looks it up later. It sends no mail if the address is verified, or
   * the account is gone, disabled or without an address. The [limits](limits.md) are for mails and not for calls: limit your form.
   *
   * So where strangers can reach your page, call it for each typed address: with the new account, or the one that has the address. Then only
   * your own look-ups and writes can tell the two apart. A login that waits mails by itself: `finishLogin` needs no such call.
   *
   * @param parameters - as in `invite`. While `email_link_confirmation` is `off`, a link with a client also signs its reader in there.
   * @returns `mailId`: by this id, the admin API shows what became of the mail.
   */
  sendVerification(user: User | string, parameters?: RequestParameters): Promise<{ mailId: string }>
  /**
   * Call it after your own page, or your support tool, changed the address of an account. Links and waiting logins of all other addresses
   * are void from then on, also if the account gets such an address back. If the new address is unverified, it gets a verification mail.
   * With `before`, the old address gets a notice, if it was verified. `email_changed` is recorded.
   *
   * Sessions go on: to end them, call `endSessions`. If it throws, call it again with the same `before`. Each call mails again, within the
   * limits. Each new mailbox gets one mail beyond them: limit your form.
   *
   * @param before - the user as you read it before the change, or its `email` and `emailVerified`. The flows do not know the old address.
   * @returns `{}` for an unknown account. A disabled one gets no verification mail.
   */
  emailChanged(
    accountId: string,
    before?: Pick<User, 'email' | 'emailVerified'>,
  ): Promise<ChangedEmail>
  /** Calls the listeners of `audit`, and of its type, with each `AuditEvent` once it is recorded. It does not wait for them. */
  events: AuditEvents
}
