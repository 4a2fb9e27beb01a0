import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { checkAdmin, type AdminToken } from './admin/options.ts'
import { systemClock, type Clock } from './clock.ts'
import type { ScopedToken } from './admin/token-check.ts'
import type { AdminJwtOptions } from './admin/jwt.ts'
import type { BeforeForgotPassword } from './http/forgot-password.ts'
import type { ResponseDelay } from './http/response-delay.ts'
import { isLoopbackHost } from './settings/loopback-host.ts'
import { logJsonLines, withoutValues } from './log.ts'
import type { AccountFlowsStore, Log, Mailer, UserStore } from './ports/index.ts'
import { isProduction, refuseWeak } from './production.ts'
import { canonicalLocale } from './views/locale-files.ts'

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
  /** Cost of the hashes of new passwords; 12 by default. Below 10 is warned of in production. */
  bcryptCost?: number
  /** The random delay of 4.2 and 4.7; by default at least 250 ms, and up to 500 ms more. None at all is warned of in production. */
  responseDelay?: ResponseDelay
  /** How many proxies in front of the process append to `X-Forwarded-For`; 0 by default. */
  trustedProxies?: number
  /**
   * A check of your own before a reset link is asked for, such as a captcha. Whoever is denied sees the same page after the same
   * time, and gets no mail; if it throws, the page says that it does not work for now. It should take as long for an account as
   * for none.
   */
  beforeForgotPassword?: BeforeForgotPassword
  /** Settings put at start where none is stored, by their names on the wire. */
  initialSettings?: Record<string, string>
  /** Takes the mails while SMTP is not configured. `undefined`: they wait. */
  developmentMailer?: Mailer
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
  bcryptCost: number
  responseDelay: ResponseDelay
  trustedProxies: number
  beforeForgotPassword: BeforeForgotPassword | undefined
  initialSettings: Record<string, string>
  developmentMailer: Mailer | undefined
  /** Absolute. */
  viewsDirectory: string | undefined
  defaultLocale: string | undefined
  log: Log
  clock: Clock
}

export const MIN_KEY_BYTES = 32

export function checkOptions(options: AccountFlowsOptions): CheckedOptions {
  const { log = logJsonLines, clock = systemClock } = options
  const { bcryptCost = 12, trustedProxies = 0 } = options
  const { responseDelay = { floorMs: 250, jitterMs: 500 }, beforeForgotPassword } = options
  const weak = refuseWeak(log)

  for (const name of ['store', 'users'] as const) {
    if (!isObject(options[name])) throw new TypeError(`${name} is missing`)
  }
  if (beforeForgotPassword !== undefined && typeof beforeForgotPassword !== 'function') {
    throw new TypeError('beforeForgotPassword must be a function')
  }
  for (const name of ['now', 'sleep'] as const) {
    if (typeof clock?.[name] !== 'function') throw new TypeError(`clock.${name} must be a function`)
  }
  checkNumber('bcryptCost', bcryptCost, 4, 31)
  checkNumber('trustedProxies', trustedProxies, 0, 100)
  checkNumber('responseDelay.floorMs', responseDelay.floorMs, 0, 60_000)
  checkNumber('responseDelay.jitterMs', responseDelay.jitterMs, 0, 60_000)
  if (isProduction()) warnOfTooLittle(bcryptCost, responseDelay, log)
  return {
    baseUrl: checkBaseUrl(options.baseUrl, weak),
    oauthPath: checkOAuthPath(options.oauthPath ?? ''),
    secrets: checkSecrets(options.secrets, weak),
    store: options.store,
    users: options.users,
    ...checkAdmin(options, weak),
    bcryptCost,
    responseDelay,
    trustedProxies,
    beforeForgotPassword,
    initialSettings: options.initialSettings ?? {},
    developmentMailer: options.developmentMailer,
    viewsDirectory: checkViewsDirectory(options.viewsDirectory),
    defaultLocale: checkDefaultLocale(options.defaultLocale),
    log: withoutValues(log),
    clock,
  }
}

// Not refused: some machines are small, and some tests run as in production.
function warnOfTooLittle(bcryptCost: number, { floorMs, jitterMs }: ResponseDelay, log: Log) {
  if (bcryptCost < 10) log('warn', 'bcryptCost is below 10: hashes of passwords are cheap to guess')
  if (floorMs + jitterMs > 0) return
  log('warn', 'responseDelay is zero: the time of an answer may tell who has an account')
}

type Weak = (problem: string) => void

function checkBaseUrl(baseUrl: string, weak: Weak): URL {
  if (!URL.canParse(baseUrl))
    throw new TypeError('baseUrl must be an absolute http or https address')
  const url = new URL(baseUrl)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw new TypeError('baseUrl must be an absolute http or https address')
  }
  if (url.search || url.hash || url.username || url.password) {
    throw new TypeError('baseUrl must have no query, fragment or credentials')
  }
  if (url.protocol === 'http:' && !isLoopbackHost(url.hostname))
    weak('baseUrl is http: links can be read')
  return url
}

function checkOAuthPath(oauthPath: string): string {
  if (!/^(\/[A-Za-z0-9._~-]+)*$/.test(oauthPath)) {
    throw new TypeError('oauthPath must be empty, or start with / and not end with one')
  }
  return oauthPath
}

function checkViewsDirectory(directory: string | undefined): string | undefined {
  if (directory === undefined) return undefined
  if (typeof directory !== 'string' || !isDirectory(directory)) {
    throw new TypeError('viewsDirectory must be a directory that is there')
  }
  return resolve(directory)
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

function checkDefaultLocale(locale: string | undefined): string | undefined {
  if (locale === undefined || (typeof locale === 'string' && canonicalLocale(locale))) return locale
  throw new TypeError('defaultLocale must be a language tag (BCP 47)')
}

function checkSecrets(secrets: readonly (string | Uint8Array)[], weak: Weak) {
  const keys = Array.isArray(secrets) ? secrets.map(keyBytes) : []
  const [first, ...others] = keys
  if (!first) throw new TypeError('secrets must hold at least one key')
  for (const key of keys) {
    if (key.length === 0) throw new TypeError('secrets must be bytes, or base64url text')
    if (key.length < MIN_KEY_BYTES) weak(`secrets must each have ${MIN_KEY_BYTES} bytes or more`)
  }
  return [first, ...others] as const
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

function keyBytes(secret: unknown): Buffer {
  if (secret instanceof Uint8Array) return Buffer.from(secret)
  if (typeof secret !== 'string') return Buffer.alloc(0)
  return /^[A-Za-z0-9_-]+=*$/.test(secret) ? Buffer.from(secret, 'base64url') : Buffer.alloc(0)
}

function checkNumber(name: string, value: number, min: number, max: number): void {
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new TypeError(`${name} must be a whole number from ${min} to ${max}`)
  }
}
