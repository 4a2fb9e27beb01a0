import type { AdminToken } from './admin/options.ts'
import type { ScopedToken } from './admin/bearer-tokens.ts'
import type { AdminJwtOptions } from './admin/jwt.ts'
import type { Clock } from './clock.ts'
import type { Hashing } from './crypto/hashing.ts'
import type { Captcha } from './http/captcha.ts'
import type { BeforeForgotPassword } from './http/host-check.ts'
import type { ResponseDelay } from './http/response-delay.ts'
import type { SettingTexts } from './settings/table.ts'
import type { AccountFlowsStore, Log, MailTransport, UserStore } from './ports/index.ts'
import type { Brand } from './views/brand.ts'

/** What `createAccountFlows` takes. Bad options are refused with a `TypeError` that names the option. */
export interface AccountFlowsOptions {
  /** Where the service is reached from outside. Links are built from it, and from nothing in a request. */
  baseUrl: string
  /** The prefix under which the provider is mounted, such as `/oauth2`; empty for none. The issuer is both together. */
  oauthPath?: string
  /**
   * The key ring: each 32 bytes or more, a string in base64url. The first signs and encrypts, all verify and decrypt. To rotate,
   * put a new one at the end in every process, and in front when all of them have it; `doctor` tells.
   */
  secrets: readonly (string | Uint8Array)[]
  store: AccountFlowsStore
  users: UserStore
  /**
   * Fixed bearer token of the admin API (5), or several that are all in force, as during a rotation. A text may do everything;
   * `{ token, scopes }` what its scopes say. Without it and `adminJwt`, the admin API lets nobody in.
   */
  adminToken?: AdminToken | readonly AdminToken[] | undefined
  /** How a JWT of an admin is judged, in place of a fixed token. */
  adminJwt?: AdminJwtOptions
  /** Where the admin API answers, below the base URL; `/admin/api` by default. */
  adminPath?: string
  /** Cost of the bcrypt hashes of new passwords; 12 by default. Below 10 is warned of in production. */
  bcryptCost?: number
  /**
   * Hashes and compares passwords in the place of bcrypt, such as with Argon2. A stored hash of before is for it to read, or
   * nobody signs in with it. A new password has 72 bytes at most all the same.
   */
  hashing?: Hashing | undefined
  /** The random delay of 4.2 and 4.7; by default at least 250 ms, and up to 500 ms more. None at all is warned of in production. */
  responseDelay?: ResponseDelay
  /** How many proxies in front of the process append to `X-Forwarded-For`; 0 by default. */
  trustedProxies?: number
  /**
   * A check of your own before a link is asked for by a form, such as a captcha: at forgot-password and at resend-verification. Whoever
   * is denied sees the same page after the same time, and gets no mail; if it throws, the page says that it does not work for now. It
   * should take as long for an account as for none.
   */
  beforeForgotPassword?: BeforeForgotPassword
  /** A widget in these forms, such as a captcha. `beforeForgotPassword` judges its answer, and has to be there. `docs/captcha.md` shows some. */
  captcha?: Captcha | undefined
  /** Settings that each start stores where they have no value yet, by their names on the wire. */
  initialSettings?: Partial<SettingTexts>
  /**
   * Sends the mails in the place of SMTP: the settings `smtp_host` and `smtp_port` are not used then. A stand-in, such as
   * `memoryMailbox()`, takes mails only while SMTP is not configured, and is refused in production. `docs/mail.md` shows
   * some. Without it mails leave by SMTP, and wait until that is configured.
   */
  transport?: MailTransport | undefined
  /** Name, logo, colour and addresses on every page and in every mail. `undefined`: they look neutral, and miss nothing. */
  brand?: Brand | undefined
  /**
   * A directory of views of your own, absolute or relative to the working directory: each file in it takes the place of ours of the
   * same name, and `theme.css` is added to the style sheet. Read once; `docs/customizing.md` tells what may be there.
   */
  viewsDirectory?: string | undefined
  /** Spoken where nothing is known of what the reader prefers (BCP 47); there must be words in it. `en` by default. */
  defaultLocale?: string | undefined
  /** `logJsonLines` by default. What it is given holds nothing that an error quotes. */
  log?: Log
  /** For tests that move time; the clock of the machine by default. Give the store and the adapter the same one. */
  clock?: Clock
}

/** The options, checked and complete. */
export interface CheckedOptions {
  baseUrl: URL
  oauthPath: string
  secrets: readonly [Buffer, ...Buffer[]]
  store: AccountFlowsStore
  users: UserStore
  adminTokens: readonly ScopedToken[]
  adminJwt: AdminJwtOptions | undefined
  adminPath: string
  bcryptCost: number
  hashing: Hashing | undefined
  responseDelay: ResponseDelay
  trustedProxies: number
  beforeForgotPassword: BeforeForgotPassword | undefined
  captcha: Captcha | undefined
  initialSettings: Partial<SettingTexts>
  transport: MailTransport | undefined
  brand: Brand
  /** Absolute. */
  viewsDirectory: string | undefined
  defaultLocale: string | undefined
  log: Log
  clock: Clock
}

export const MIN_KEY_BYTES = 32
