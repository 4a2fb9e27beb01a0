import { MIN_ADMIN_TOKEN_LENGTH } from './options.ts'
import { timeout, type Clock } from '../clock.ts'
import { inTime } from './in-time.ts'
import { type OwnKeyRing, ringsCheck } from '../crypto/key-rings.ts'
import { MIN_KEY_BYTES } from '../options.ts'
import type { AccountFlowsStore, CheckedStep, CheckMail, MailStep } from '../ports/index.ts'
import { secretsCheck, settingsCheck, type StoredSettingsKeeper } from './settings-checks.ts'
import type { SettingsKeeper } from '../settings/settings.ts'

export type DoctorStep =
  | 'keys'
  | 'database'
  | 'indexes'
  | 'clock'
  | 'secrets'
  | 'settings'
  | 'outbox'
  | 'base_url'
  | 'configuration'
  | MailStep

type Check = CheckedStep<DoctorStep>

export interface DoctorParts {
  store: Pick<AccountFlowsStore, 'now' | 'inspect' | 'outbox'>
  settings: Pick<SettingsKeeper, 'current'> & StoredSettingsKeeper
  keyRing: Pick<OwnKeyRing, 'all'>
  checkMail: CheckMail
  /** The key ring of the options. */
  secrets: readonly Buffer[]
  /** The fixed admin tokens; none where JWTs are checked. */
  adminTokens: readonly { token: string }[]
  /** Whether something takes the mails while SMTP is not configured. */
  hasDevelopmentMailer: boolean
  /** The issuer: base URL and OAuth path. */
  oauthUrl: string
  clock: Clock
}

const CLOCK_WARNING_MS = 1_000
const CLOCK_FAILURE_MS = 60_000
const REACH_MS = 5_000
const MAX_LETTERS = 100

/**
 * Checks, from the server itself, what keys, database, clock, base URL and mail server say of themselves. Nothing is changed; with
 * `to`, the mail server is asked whether it takes mails to that address.
 */
export function createDoctor(parts: DoctorParts) {
  const { store, settings, checkMail, clock } = parts
  const now = () => clock.now().getTime()

  async function databaseChecks(): Promise<[keys: Check, ...Check[]]> {
    const askedAt = now()
    let storeTime: Date
    try {
      storeTime = await inTime(clock, store.now())
    } catch (error) {
      const failed: Check = {
        step: 'database',
        status: 'failed',
        message: `The database cannot be reached (${codeOf(error)}).`,
        advice: 'Check that it runs, and that this server may connect to it.',
      }
      const unseen = ['indexes', 'clock', 'secrets', 'settings', 'outbox'] as const
      return [skipped('keys'), failed, ...unseen.map(skipped)]
    }
    const answeredAt = now()
    const between = (askedAt + answeredAt) / 2
    return [
      await orFailed('keys', async () => ringsCheck(await parts.keyRing.all())),
      ok('database', `The database answers in ${answeredAt - askedAt} ms.`),
      await orFailed('indexes', indexCheck),
      clockCheck(between - storeTime.getTime()),
      await orFailed('secrets', () => secretsCheck(settings)),
      await orFailed('settings', () => settingsCheck(settings)),
      await orFailed('outbox', outboxCheck),
    ]
  }

  // As they are stored: another process may have changed them just now.
  async function mailChecks(to: string | undefined): Promise<Check[]> {
    await inTime(clock, settings.refresh()).catch(() => {})
    return checkMail(settings.current(), { ...(to !== undefined && { to }) })
  }

  async function indexCheck(): Promise<Check> {
    const step = 'indexes'
    const inspection = await store.inspect?.()
    if (!inspection) return { ...skipped(step), message: 'The store cannot tell.' }
    const { wrongIndexes, isVolatile } = inspection
    if (wrongIndexes.length > 0) {
      return {
        step,
        status: 'failed',
        message: `Indexes are missing or have other options: ${wrongIndexes.join(', ')}.`,
        advice: 'Drop those that exist under these names, then restart: start() creates them.',
      }
    }
    if (!isVolatile)
      return ok(step, 'All indexes of the store are there; those of the users are not looked at.')
    const message = 'Everything is kept in this process alone, and lost when it ends.'
    return { step, status: 'warning', message, advice: 'Use mongoStore(db) in production.' }
  }

  async function outboxCheck(): Promise<Check> {
    const step = 'outbox'
    const letters = await store.outbox.list({ state: 'dead', limit: MAX_LETTERS }, clock.now())
    if (letters.length === 0) return ok(step, 'There are no dead letters.')
    const count = letters.length < MAX_LETTERS ? letters.length : `${MAX_LETTERS} or more`
    const message = `Dead letters: ${count}.`
    return {
      step,
      status: 'warning',
      message,
      advice: 'Run account-flows outbox list --state dead.',
    }
  }

  /** The report is complete whatever happens meanwhile. */
  async function orFailed(step: DoctorStep, look: () => Promise<Check>): Promise<Check> {
    try {
      return await inTime(clock, look())
    } catch (error) {
      return {
        step,
        status: 'failed',
        message: `This could not be looked up (${codeOf(error)}).`,
        advice: 'See what this server may do in the database, and try again.',
      }
    }
  }

  return async (to?: string): Promise<Check[]> => {
    const [[keys, ...database], baseUrl, mail] = await Promise.all([
      databaseChecks(),
      baseUrlCheck(parts.oauthUrl, clock),
      mailChecks(to),
    ])
    return [
      weakKeyCheck(parts) ?? keys,
      ...database,
      baseUrl,
      ...(parts.hasDevelopmentMailer ? mail.map(inDevelopment) : mail),
    ]
  }
}

function inDevelopment(check: Check): Check {
  if (check.step !== 'configuration' || check.status !== 'failed') return check
  const message = 'SMTP is not configured: mails go into the development mailbox.'
  return { ...check, status: 'warning', message }
}

/** `undefined`: each is long enough. */
function weakKeyCheck({ secrets, adminTokens }: DoctorParts): Check | undefined {
  const isShort = secrets.some((key) => key.length < MIN_KEY_BYTES)
  const isGuessable = adminTokens.some(({ token }) => token.length < MIN_ADMIN_TOKEN_LENGTH)
  if (!isShort && !isGuessable) return undefined
  return {
    step: 'keys',
    status: 'failed',
    message: isShort
      ? `A key of the ring has fewer than ${MIN_KEY_BYTES} bytes.`
      : `An admin token has fewer than ${MIN_ADMIN_TOKEN_LENGTH} characters.`,
    advice: 'Make a new one from 32 random bytes; a new key goes to the end of the ring first.',
  }
}

function clockCheck(skewMs: number): Check {
  const step = 'clock'
  const seconds = `${(Math.abs(skewMs) / 1000).toFixed(1)} s`
  if (Math.abs(skewMs) <= CLOCK_WARNING_MS) return ok(step, 'This clock and the database agree.')
  return {
    step,
    status: Math.abs(skewMs) > CLOCK_FAILURE_MS ? 'failed' : 'warning',
    message: `The clock of this server is ${seconds} ${skewMs > 0 ? 'ahead of' : 'behind'} the database.`,
    advice: 'Have both follow NTP: links expire and sessions end by these clocks.',
  }
}

/** Fetched from here: whether the world reaches it is another question. */
async function baseUrlCheck(oauthUrl: string, clock: Clock): Promise<Check> {
  const step = 'base_url'
  const failed = (message: string, advice: string): Check => ({
    step,
    status: 'failed',
    message,
    advice,
  })
  const url = `${oauthUrl}/.well-known/openid-configuration`
  const advice = 'Check baseUrl and oauthPath, the proxy in front, and its certificate.'
  const { signal, cancel } = timeout(clock, REACH_MS)
  try {
    const response = await fetch(url, { redirect: 'manual', signal })
    const found: unknown = await response.json().catch(unlessLate)
    const issuer: unknown = Reflect.get(Object(found), 'issuer')
    if (response.status !== 200) return failed(`${url} answers ${response.status}.`, advice)
    if (issuer === oauthUrl) return ok(step, `${oauthUrl} is reached, and is the issuer.`)
    return failed(`What answers at ${url} is not this issuer.`, advice)
  } catch (error) {
    return failed(`${url} cannot be reached from this server (${codeOf(error)}).`, advice)
  } finally {
    cancel()
  }
}

function ok(step: DoctorStep, message: string): Check {
  return { step, status: 'ok', message }
}

function skipped(step: DoctorStep): Check {
  return { step, status: 'skipped', message: 'Not tried.' }
}

function unlessLate(error: unknown): undefined {
  if (error instanceof Error && error.name === 'TimeoutError') throw error
}

/** A code alone: messages may quote addresses and credentials. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown reason'
  if (error.name === 'TimeoutError') return 'no answer in time'
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    const code: unknown = Reflect.get(cause, 'code')
    if (typeof code === 'string') return code
  }
  return error.name
}
