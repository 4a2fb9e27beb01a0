import type { AdminToken } from './admin/options.ts'
import type { AdminJwtOptions } from './admin/jwt.ts'
import type { Clock } from './clock.ts'
import type { Hashing } from './crypto/hashing.ts'
import type { Captcha } from './http/captcha.ts'
import type { ResponseDelay } from './http/response-delay.ts'
import type { ClientLogoutOptions } from './oidc/post-form.ts'
import type { SettingTexts } from './settings/table.ts'
import type { RecordStore } from './ports/record-store.ts'
import type {
  BeforeForgotPassword,
  JudgePassword,
  Log,
  MailTransport,
  UserStore,
} from './ports/index.ts'
import type { Brand } from './views/brand.ts'

/** The options of `createAccountFlows`. A bad option is refused with a `TypeError` that names it. */
export interface AccountFlowsOptions {
  /** The public address of the service. Links are built only from it, never from a request. */
  baseUrl: string
  /** The path prefix of the provider, such as `/oauth2`; empty for none. `baseUrl` and `oauthPath` together are the issuer. */
  oauthPath?: string
  /**
   * The key ring: each key has 32 bytes or more; a string is base64url. The first key signs and encrypts, all verify and
   * decrypt. To rotate, add a new key at the end in every process. When all processes have it, put it first. `doctor` tells
   * when.
   */
  secrets: readonly (string | Uint8Array)[]
  /** `mongoStore(db)`, `postgresStore(pool)`, or one of your own (`docs/stores.md`); to try it, `memoryStore()`. */
  store: RecordStore
  users: UserStore
  /**
   * Fixed bearer token of the admin API (5), or several, for example during a rotation. A text may do everything; `{ token,
   * scopes }` only what its scopes allow. Without `adminToken` and `adminJwt`, the admin API lets no one in.
   */
  adminToken?: AdminToken | readonly AdminToken[] | undefined
  /** How to check the JWT of an admin. Give this or `adminToken`. */
  adminJwt?: AdminJwtOptions
  /** Path of the admin API below the base URL; `/admin/api` by default. */
  adminPath?: string
  /** Cost of the bcrypt hashes of new passwords; 12 by default. In production, a cost below 10 logs a warning. */
  bcryptCost?: number
  /**
   * Hashes and compares passwords instead of bcrypt, for example with Argon2. It must also read the hashes that are already
   * stored, or their users cannot sign in. A new password still has at most 72 bytes.
   */
  hashing?: Hashing | undefined
  /** The random delay of 4.2 and 4.7; by default at least 250 ms, and up to 500 ms more. In production, no delay logs a warning. */
  responseDelay?: ResponseDelay
  /**
   * How clients are notified that an account is signed out (back-channel logout). By default only clients with a public address are;
   * with `allowPrivateNetworks: true` also those in private networks and on this machine. See `docs/clients.md`.
   */
  clientLogout?: ClientLogoutOptions | undefined
  /** How many proxies in front of this process append to `X-Forwarded-For`; 0 by default. */
  trustedProxies?: number
  /**
   * Your own check before a form asks for a link, such as a captcha: at forgot-password and at resend-verification. A denied person
   * sees the same page after the same time, but gets no mail. If the check throws, the page says that it does not work for now.
   * The check should take the same time with and without an account.
   */
  beforeForgotPassword?: BeforeForgotPassword
  /** Your own judgement of each new password, after ours: `undefined` takes it, `{ reason }` refuses it. See `docs/passwords.md`. */
  judgePassword?: JudgePassword | undefined
  /**
   * A widget in these forms, such as a captcha. `beforeForgotPassword` checks its answer, and is required then. See
   * `docs/captcha.md`.
   */
  captcha?: Captcha | undefined
  /** Settings by their names on the wire. Each start stores those that have no stored value yet. */
  initialSettings?: Partial<SettingTexts>
  /**
   * Sends the mails instead of SMTP; `smtp_host` and `smtp_port` are then not used. `docs/mail.md` has examples. A stand-in,
   * such as `memoryMailbox()`, gets mails only while SMTP is not configured, and production refuses it. Without a transport,
   * mails leave by SMTP, and wait until SMTP is configured.
   */
  transport?: MailTransport | undefined
  /** Name, logo, colour and addresses on every page and in every mail. `undefined`: a neutral look without gaps. */
  brand?: Brand | undefined
  /**
   * Your own views directory, absolute or relative to the working directory. Each file replaces ours of the same name;
   * `theme.css` is added to the style sheet. It is read once, at the start. See `docs/customizing.md`.
   */
  viewsDirectory?: string | undefined
  /** The language when nothing is known about the reader (BCP 47); its texts must exist. `en` by default. */
  defaultLocale?: string | undefined
  /** `logJsonLines` by default. Quotes from errors are removed before it is called. */
  log?: Log
  /** For tests that move the time; the system clock by default. Give the same clock to a store in memory. */
  clock?: Clock
}

export const MIN_KEY_BYTES = 32
