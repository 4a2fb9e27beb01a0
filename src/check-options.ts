import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { checkAdmin } from './admin/options.ts'
import { systemClock } from './clock.ts'
import { checkCaptcha } from './http/captcha.ts'
import type { ResponseDelay } from './http/response-delay.ts'
import { logJsonLines, withoutValues } from './log.ts'
import { MIN_KEY_BYTES, type AccountFlowsOptions } from './options.ts'
import type { Log } from './ports/index.ts'
import { checkClientLogout } from './oidc/post-form.ts'
import { isProduction, must, refuseWeak } from './production.ts'
import { isInTheClear } from './settings/loopback-host.ts'
import { checkBrand } from './views/brand.ts'
import { canonicalLocale } from './views/locale-files.ts'

/** The options, checked and complete. */
export type CheckedOptions = ReturnType<typeof checkOptions>

export function checkOptions(options: AccountFlowsOptions) {
  const { log = logJsonLines, clock = systemClock } = options
  const { bcryptCost = 12, hashing, trustedProxies = 0 } = options
  const { responseDelay = { floorMs: 250, jitterMs: 500 }, beforeForgotPassword } = options
  const refuse = refuseWeak(log)

  for (const name of ['store', 'users'] as const)
    must(typeof options[name] === 'object' && options[name], `${name} is missing`)
  for (const name of ['beforeForgotPassword', 'judgePassword'] as const)
    if (options[name] !== undefined) checkFunctions(options, [name])
  must(
    !options.captcha || beforeForgotPassword,
    'captcha needs beforeForgotPassword, which judges its answer',
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
  return {
    ...options,
    ...checkAdmin(options, refuse),
    baseUrl,
    oauthPath,
    adminPath,
    secrets: checkSecrets(options.secrets, refuse),
    bcryptCost,
    responseDelay,
    allowPrivateNetworks: checkClientLogout(options.clientLogout),
    trustedProxies,
    captcha: checkCaptcha(options.captcha, refuse),
    initialSettings: options.initialSettings ?? {},
    transport: checkTransport(options.transport),
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

type RefuseWeak = (problem: string) => void

function checkBaseUrl(baseUrl: string, refuse: RefuseWeak): URL {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined
  must(url && /^https?:$/.test(url.protocol), 'baseUrl must be an absolute http or https address')
  const isBare = !url.search && !url.hash && !url.username && !url.password
  must(isBare, 'baseUrl must have no query, fragment or credentials')
  if (isInTheClear(url))
    refuse('baseUrl is http: others on the network can read the links; use https')
  return url
}

const PATH = /^(\/[A-Za-z0-9._~-]+)*$/

function checkPaths(oauthPath: string, adminPath: string): void {
  must(PATH.test(oauthPath), 'oauthPath must be empty, or start with / and not end with /')
  // The admin API answers everything below its path.
  must(
    adminPath && PATH.test(adminPath) && !`${oauthPath}/`.startsWith(`${adminPath}/`),
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
