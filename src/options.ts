import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { checkAdmin, type AdminJwtOptions, type AdminToken } from './admin/options.ts'
import { systemClock, type Clock } from './clock.ts'
import type { Hashing } from './crypto/hashing.ts'
import { checkCaptcha, type Captcha } from './http/captcha.ts'
import type { ResponseDelay } from './http/mail-forms.ts'
import { checkClientLogout, type ClientLogoutOptions } from './oidc/post-form.ts'
import type { SettingTexts } from './settings/table.ts'
import type { RecordStore } from './store/record-store.ts'
import type {
  BeforeForgotPassword,
  ValidatePassword,
  Log,
  MailTransport,
  UserStore,
} from './contract/index.ts'
import { checkBrand, type Brand } from './views/brand.ts'
import { logJsonLines, withoutValues } from './log.ts'
import { isPath, isProduction, must, refuseWeak, type RefuseWeak } from './errors.ts'
import { isInTheClear } from './settings/addresses.ts'
import { canonicalLocale } from './views/locales.ts'

/** The options of `createAccountFlows`. A bad option is refused with a `TypeError` that names it. */
export interface AccountFlowsOptions {
  /** The public address of the service. Links are built only from it, never from a request. */
  baseUrl: string
  /** The path prefix of the provider, such as `/oauth2`; empty for none. `baseUrl` and `oauthPath` together are the issuer. */
  oauthPath?: string
  /**
   * The key ring: each key has 32 bytes or more; a string is base64url. The first key signs and encrypts, all verify and decrypt. To
   * rotate, add a new key at the end in every process. When all processes have it, put it first. `doctor` says when.
   */
  secrets: readonly (string | Uint8Array)[]
  /** `mongoStore(db)`, `postgresStore(pool)`, or one of your own (`docs/stores.md`); to try it, `memoryStore()`. */
  store: RecordStore
  /** `mongoUsers(collection)`, or users of your own. */
  users: UserStore
  /**
   * One fixed bearer token of the admin API, or several, for example during a rotation. A string may do everything; an object with
   * `token` and `scopes`, only what its scopes allow. Without `adminToken` and `adminJwt`, the admin API refuses every request.
   */
  adminToken?: AdminToken | readonly AdminToken[] | undefined
  /** How to check the JWT of an admin. Give this or `adminToken`. */
  adminJwt?: AdminJwtOptions
  /** Path of the admin API below the base URL; `/admin/api` by default. */
  adminPath?: string
  /** Cost of the bcrypt hashes of new passwords; 12 by default. In production, a cost below 10 logs a warning. */
  bcryptCost?: number
  /**
   * Hashes and compares passwords instead of bcrypt, for example with Argon2. It must also read the hashes that are already stored, or
   * their users cannot sign in. A new password still has at most 72 bytes.
   */
  hashing?: Hashing | undefined
  /** The random delay of answers to forms that ask for a mail; by default 250 to 750 ms. In production, no delay logs a warning. */
  responseDelay?: ResponseDelay
  /**
   * How clients are notified that an account is signed out (back-channel logout). By default, only clients with a public address are
   * notified. With `allowPrivateNetworks: true`, those in private networks and on this machine are notified too. See `docs/clients.md`.
   */
  clientLogout?: ClientLogoutOptions | undefined
  /** How many proxies a request passes; 0 by default. The outermost overwrites `X-Forwarded-For`, and each other appends to it. */
  trustedProxies?: number
  /**
   * Your own check, such as a captcha, before a form requests a link: at forgot-password and at resend-verification. A denied person sees
   * the same page after the same time, but gets no mail. If the check throws, the page says that it does not work for now. The check should
   * take the same time with and without an account.
   */
  beforeForgotPassword?: BeforeForgotPassword
  /** Your own check of each new password, after ours: `undefined` accepts it, `{ reason }` refuses it. See `docs/passwords.md`. */
  validatePassword?: ValidatePassword | undefined
  /**
   * A widget, such as a captcha, in the forms of `beforeForgotPassword`. That option is then required, and checks the answer. See
   * `docs/captcha.md`.
   */
  captcha?: Captcha | undefined
  /** Settings by their names on the wire. Each start stores those that have no stored value yet. */
  initialSettings?: Partial<SettingTexts>
  /**
   * Sends the mails instead of SMTP; `smtp_host` and `smtp_port` are then not used. `docs/mail.md` has examples. A stand-in, such as
   * `memoryMailbox()`, gets mails only while SMTP is not configured, and production refuses it. Without a transport, mails leave by SMTP,
   * and wait until SMTP is configured.
   */
  transport?: MailTransport | undefined
  /** Name, logo, colour and addresses on every page and in every mail. `undefined`: a neutral look without gaps. */
  brand?: Brand | undefined
  /**
   * Your own views directory, absolute or relative to the working directory. Each file replaces ours of the same name; `theme.css` is added
   * to the style sheet. It is read once, at the start. See `docs/customizing.md`.
   */
  viewsDirectory?: string | undefined
  /** The language for readers whose language is unknown (BCP 47); its texts must exist. `en` by default. */
  defaultLocale?: string | undefined
  /** `logJsonLines` by default. Quotes from errors are removed before it is called. */
  log?: Log
  /** For tests that move the time; the system clock by default. Give the same clock to a store in memory. */
  clock?: Clock
}

export const MIN_KEY_BYTES = 32

/** The others may be left out. */
const USER_METHODS: (keyof UserStore)[] = [
  'findById',
  'findByUsername',
  'findByVerifiedEmail',
  'replacePasswordHash',
  'markEmailVerified',
]

export type CheckedOptions = ReturnType<typeof checkOptions>

export function checkOptions(options: AccountFlowsOptions) {
  const { log = logJsonLines, clock = systemClock } = options
  const { bcryptCost = 12, hashing, trustedProxies = 0 } = options
  const { responseDelay = { floorMs: 250, jitterMs: 500 }, beforeForgotPassword } = options
  const refuse = refuseWeak(log)

  for (const name of ['store', 'users'] as const)
    must(typeof options[name] === 'object' && options[name], `${name} is missing`)
  checkFunctions(options.users, USER_METHODS, 'users.')
  for (const name of ['beforeForgotPassword', 'validatePassword'] as const)
    if (options[name] !== undefined) checkFunctions(options, [name])
  must(
    !options.captcha || beforeForgotPassword,
    'captcha needs beforeForgotPassword, which checks its answer',
  )
  checkFunctions(clock, ['now', 'sleep'], 'clock.')
  if (hashing !== undefined) checkFunctions(hashing, ['hash', 'verify'], 'hashing.')
  checkNumber('bcryptCost', bcryptCost, 4, 31)
  checkNumber('trustedProxies', trustedProxies, 0, 100)
  for (const name of ['floorMs', 'jitterMs'] as const)
    checkNumber(`responseDelay.${name}`, responseDelay[name], 0, 60_000)
  if (isProduction()) warnOfTooLittle(bcryptCost, responseDelay, log)
  const oauthPath = options.oauthPath ?? ''
  const adminPath = options.adminPath ?? '/admin/api'
  checkPaths(oauthPath, adminPath)
  const baseUrl = checkBaseUrl(options.baseUrl, refuse)
  const basePath = baseUrl.pathname.replace(/\/$/, '')
  return {
    ...options,
    ...checkAdmin(options, refuse),
    baseUrl,
    basePath,
    oauthPath,
    /** The issuer; where links start. */
    oauthUrl: `${baseUrl.origin}${basePath}${oauthPath}`,
    adminPath,
    secrets: checkSecrets(options.secrets, refuse),
    bcryptCost,
    responseDelay,
    allowPrivateNetworks: checkClientLogout(options.clientLogout),
    trustedProxies,
    captcha: checkCaptcha(options.captcha, refuse),
    initialSettings: options.initialSettings ?? {},
    transport: checkTransport(options.transport),
    /** No mail leaves by a stand-in. */
    hasTransport: options.transport !== undefined && !options.transport.isStandIn,
    brand: checkBrand(options.brand, baseUrl),
    viewsDirectory: checkViewsDirectory(options.viewsDirectory),
    defaultLocale: checkDefaultLocale(options.defaultLocale),
    log: withoutValues(log),
    clock,
  }
}

// Only a warning: some machines are small, and some tests run in production mode.
function warnOfTooLittle(bcryptCost: number, { floorMs, jitterMs }: ResponseDelay, log: Log) {
  if (bcryptCost < 10)
    log('warn', 'bcryptCost is below 10: stolen password hashes are easy to crack; use 10 or more')
  if (floorMs + jitterMs > 0) return
  log('warn', 'responseDelay is zero: response times may show who has an account')
}

function checkBaseUrl(baseUrl: string, refuse: RefuseWeak): URL {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined
  must(url && /^https?:$/.test(url.protocol), 'baseUrl must be an absolute http or https address')
  const isBare = !url.search && !url.hash && !url.username && !url.password
  must(isBare, 'baseUrl must have no query, fragment or credentials')
  if (isInTheClear(url))
    refuse('baseUrl is http: others on the network can read the links; use https')
  return url
}

function checkPaths(oauthPath: string, adminPath: string): void {
  must(isPath(oauthPath), 'oauthPath must be empty, or start with / and not end with /')
  // The admin API answers everything below its path.
  must(
    adminPath && isPath(adminPath) && !`${oauthPath}/`.startsWith(`${adminPath}/`),
    'adminPath must start with / and not end with /, and must not be a parent of oauthPath',
  )
}

function checkViewsDirectory(directory: string | undefined): string | undefined {
  if (directory === undefined) return undefined
  const isDirectory = typeof directory === 'string' && directory && existsSync(`${directory}/.`)
  must(isDirectory, 'viewsDirectory must be an existing directory')
  return resolve(directory)
}

function checkDefaultLocale(locale: string | undefined): string | undefined {
  const isTag = typeof locale === 'string' && canonicalLocale(locale)
  must(locale === undefined || isTag, 'defaultLocale must be a language tag (BCP 47)')
  return locale
}

function checkSecrets(secrets: readonly (string | Uint8Array)[], refuse: RefuseWeak) {
  const keys = Array.isArray(secrets) ? secrets.map(keyBytes) : []
  const [first, ...others] = keys
  must(first, 'secrets must hold at least one key')
  for (const key of keys) {
    must(key.length > 0, 'secrets must be bytes, or base64url text')
    if (key.length < MIN_KEY_BYTES) refuse(`secrets must each have ${MIN_KEY_BYTES} bytes or more`)
  }
  return [first, ...others] as const
}

function checkTransport(transport: AccountFlowsOptions['transport']) {
  if (transport === undefined) return undefined
  checkFunctions(transport, ['send'], 'transport.')
  const mayBe = !transport.isStandIn || !isProduction()
  must(mayBe, 'transport delivers nothing: a development mailbox is refused in production')
  return transport
}

function checkFunctions(owner: unknown, names: string[], prefix = ''): void {
  for (const name of names) {
    const isFunction = typeof Reflect.get(Object(owner), name) === 'function'
    must(isFunction, `${prefix}${name} must be a function`)
  }
}

function keyBytes(secret: unknown): Buffer {
  if (secret instanceof Uint8Array) return Buffer.from(secret)
  if (typeof secret !== 'string') return Buffer.alloc(0)
  return /^[A-Za-z0-9_-]+=*$/.test(secret) ? Buffer.from(secret, 'base64url') : Buffer.alloc(0)
}

function checkNumber(name: string, value: number, min: number, max: number): void {
  const isInRange = Number.isInteger(value) && value >= min && value <= max
  must(isInRange, `${name} must be a whole number from ${min} to ${max}`)
}
