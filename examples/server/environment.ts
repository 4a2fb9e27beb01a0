import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ResponseDelay } from '../../src/index.ts'

/** The server cannot start, and the operator can mend it: one sentence that names the environment variable. */
export class StartRefused extends Error {
  constructor(sentence: string, options?: ErrorOptions) {
    super(sentence, options)
    this.name = 'StartRefused'
  }
}

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

const SHIPPED_SEED = fileURLToPath(new URL('../seed.json', import.meta.url))
const MIN_KEY_BYTES = 32
const MIN_ADMIN_TOKEN_LENGTH = 32

/** What the environment variables say; each is checked. */
export interface Environment {
  /** Where the server listens: an address of this machine. */
  host: string
  port: number
  /** Without a slash at its end. */
  baseUrl: string
  oauthPath: string
  /** `undefined`: the embedded store. */
  mongodbUri: string | undefined
  databaseUrl: string | undefined
  /** `undefined`: one is made up and printed. */
  adminToken: string | undefined
  /** `undefined`: those of the checkout. */
  signingKeys: string[] | undefined
  /** Only this machine reaches the server, no proxy is declared, and nothing is kept when it ends. */
  isPlayground: boolean
  /** Absolute. */
  seedFile: string
  isShippedSeed: boolean
  settingsFile: string | undefined
  /** `undefined`: the views of the package. */
  viewsDirectory: string | undefined
  responseDelay: ResponseDelay
  trustedProxies: number
  bcryptCost: number
  /** Whether mails are shown to whoever opens its page. Never in production. */
  hasMailbox: boolean
  isProduction: boolean
}

/** Throws `StartRefused`. An empty variable counts as unset, but for `OAUTH_PATH`, where it means no prefix. */
export function readEnvironment(variables: NodeJS.ProcessEnv): Environment {
  const text = (name: string) => variables[name]?.trim() || undefined

  function wholeNumber(name: string, byDefault: number, min: number, max: number): number {
    const value = text(name)
    if (value === undefined) return byDefault
    const number = /^\d{1,9}$/.test(value) ? Number(value) : NaN
    if (number >= min && number <= max) return number
    throw new StartRefused(`${name} must be a whole number from ${min} to ${max}.`)
  }

  function flag(name: string, byDefault: boolean): boolean {
    const value = text(name) ?? String(byDefault)
    if (value === 'true' || value === 'false') return value === 'true'
    throw new StartRefused(`${name} must be true or false.`)
  }

  const isProduction = text('NODE_ENV') === 'production'
  const port = wholeNumber('PORT', 3000, 1, 65_535)
  const seedFile = resolve(text('SEED_FILE') ?? SHIPPED_SEED)
  const isShippedSeed = seedFile === SHIPPED_SEED
  const [mongodbUri, databaseUrl] = [text('MONGODB_URI'), text('DATABASE_URL')]
  if (mongodbUri && databaseUrl)
    throw new StartRefused('Only one of MONGODB_URI and DATABASE_URL may be set.')
  // The people of a database are real ones.
  const isEmbedded = (mongodbUri ?? databaseUrl) === undefined
  const hasMailbox = flag('MAILBOX', isEmbedded)
  const host = text('HOST') ?? '127.0.0.1'
  const baseUrl = checkBaseUrl(text('BASE_URL') ?? `http://localhost:${port}`, isProduction)
  const trustedProxies = wholeNumber('TRUST_PROXY', 0, 0, 100)
  const isHere = isLoopback(host) && isLoopback(new URL(baseUrl).hostname) && trustedProxies === 0
  return {
    host,
    port,
    baseUrl,
    isPlayground: isEmbedded && isHere && isShippedSeed,
    oauthPath: checkOAuthPath(variables['OAUTH_PATH'] ?? '/oauth2'),
    mongodbUri,
    databaseUrl,
    adminToken: checkAdminToken(text('ADMIN_TOKEN'), isProduction),
    signingKeys: checkSigningKeys(text('SIGNING_KEYS'), isProduction),
    seedFile: checkSeedFile(seedFile, isShippedSeed && isProduction),
    isShippedSeed,
    settingsFile: text('SETTINGS_FILE'),
    viewsDirectory: text('VIEWS_DIRECTORY'),
    responseDelay: {
      floorMs: wholeNumber('RESPONSE_DELAY_FLOOR_MS', 250, 0, 60_000),
      jitterMs: wholeNumber('RESPONSE_DELAY_JITTER_MS', 500, 0, 60_000),
    },
    trustedProxies,
    bcryptCost: wholeNumber('BCRYPT_COST', 12, 4, 31),
    hasMailbox: hasMailbox && !isProduction,
    isProduction,
  }
}

const isLoopback = (host: string) => /^(localhost|\[?::1\]?|127(\.\d{1,3}){3})$/.test(host)

function checkBaseUrl(value: string, isProduction: boolean): string {
  const url = URL.canParse(value) ? new URL(value) : undefined
  if (!url || !['http:', 'https:'].includes(url.protocol)) {
    throw new StartRefused('BASE_URL must be an absolute http or https address.')
  }
  if (url.search || url.hash || url.username || url.password) {
    throw new StartRefused('BASE_URL must have no query, fragment or credentials.')
  }
  if (isProduction && url.protocol === 'http:' && !isLoopback(url.hostname)) {
    throw new StartRefused('BASE_URL must be https in production.')
  }
  return url.href.replace(/(?<!\/)\/+$/, '')
}

function checkOAuthPath(value: string): string {
  if (/^(\/[A-Za-z0-9._~-]+)*$/.test(value)) return value
  throw new StartRefused('OAUTH_PATH must be empty, or start with a slash and not end with one.')
}

function checkAdminToken(value: string | undefined, isProduction: boolean): string | undefined {
  if (value === undefined || !isProduction || value.length >= MIN_ADMIN_TOKEN_LENGTH) return value
  throw new StartRefused(
    `ADMIN_TOKEN must have ${MIN_ADMIN_TOKEN_LENGTH} characters or more in production.`,
  )
}

function checkSigningKeys(value: string | undefined, isProduction: boolean): string[] | undefined {
  if (value === undefined) {
    if (!isProduction) return undefined
    throw new StartRefused(
      `SIGNING_KEYS must be set in production: base64url keys of ${MIN_KEY_BYTES} bytes or more, comma-separated.`,
    )
  }
  const keys = value.split(',').map((key) => key.trim())
  for (const key of keys) {
    if (!/^[A-Za-z0-9_-]+=*$/.test(key)) {
      throw new StartRefused('SIGNING_KEYS must be base64url keys, comma-separated.')
    }
    if (isProduction && Buffer.from(key, 'base64url').length < MIN_KEY_BYTES) {
      throw new StartRefused(`SIGNING_KEYS must each have ${MIN_KEY_BYTES} bytes or more.`)
    }
  }
  return keys
}

function checkSeedFile(file: string, isPublished: boolean): string {
  if (!isPublished) return file
  throw new StartRefused(
    'SEED_FILE must be a file of your own in production: the passwords of the shipped users are published.',
  )
}
