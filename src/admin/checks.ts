/** What the doctor looks at, one check after the other. */
import { reachCodeOf } from '../answer.ts'
import { timeout, type Clock } from '../clock.ts'
import { isInRange, RangeServiceError } from '../passwords/range-service.ts'
import type { AccountFlowsStore } from '../records/index.ts'
import { unmetBy } from '../settings/recommended.ts'
import type { SettingsKeeper } from '../settings/settings.ts'
import type { Settings } from '../settings/table.ts'
import type { Check } from './description.ts'

const CLOCK_WARNING_MS = 1_000
const CLOCK_FAILURE_MS = 60_000
const REACH_MS = 5_000
const MAX_LETTERS = 100

export async function indexCheck(store: AccountFlowsStore): Promise<Check> {
  const step = 'indexes'
  const { wrongIndexes, isVolatile } = await store.inspect()
  if (wrongIndexes && wrongIndexes.length > 0) {
    const message = `Indexes are missing or have other options: ${wrongIndexes.join(', ')}.`
    const advice =
      'Drop the existing indexes with these names, then restart: start() creates them again.'
    return failed(step, message, advice)
  }
  if (isVolatile) {
    const message = 'All data is in the memory of this process, and is lost when it ends.'
    return warning(step, message, 'Use mongoStore(db) or postgresStore(pool) in production.')
  }
  if (!wrongIndexes) return { ...skipped(step), message: 'This store does not report its indexes.' }
  return ok(step, 'All indexes of the store exist. The indexes of your users are not checked.')
}

/** What the doctor says of the stored secrets. */
export async function secretsCheck(settings: SettingsKeeper): Promise<Check> {
  const step = 'secrets'
  const outcome = await settings.reseal({ isDryRun: true })
  if (outcome === 'unreadable') return skipped(step)
  const { resealed, unreadable } = outcome
  if (unreadable.length > 0) {
    const advice = 'Put the old key back after the first key, or set the value again.'
    return failed(step, `No key of the ring opens ${unreadable.join(', ')}.`, advice)
  }
  if (resealed.length === 0) return ok(step, 'Stored secrets are encrypted with the first key.')
  return warning(
    step,
    `${resealed.join(', ')}: encrypted with an older key of the ring, which is still needed.`,
    'When all processes have the same first key, run account-flows keys rotate.',
  )
}

/** What the doctor says of everything that is stored of the settings. */
export async function settingsCheck(settings: SettingsKeeper): Promise<Check> {
  const step = 'settings'
  await settings.refresh()
  const faults = settings.faults()
  if (faults.length === 0) return ok(step, 'All stored settings are valid.')
  return failed(
    step,
    `${faults.map(({ key, problem }) => `${key}: ${problem}`).join('. ')}.`,
    'Use account-flows settings set or unset for a value that is not valid. An unreadable record: repair or delete it in the database.',
  )
}

/** What the doctor says of settings that are good, and could be better. */
export function recommendedCheck(settings: SettingsKeeper): Check {
  const step = 'recommended'
  const unmet = unmetBy(settings.current())
  if (unmet.length === 0) return ok(step, 'The settings are as recommended, or stricter.')
  const message = unmet
    .map(({ name, value, reason }) => `${name}: ${value} is recommended, so that ${reason}`)
    .join('. ')
  const advice =
    'See the changes with account-flows settings apply recommended --dry-run. To make them, leave --dry-run out.'
  return { step, status: 'advice', message: `${message}.`, advice }
}

export async function outboxCheck({ outbox }: AccountFlowsStore, at: Date): Promise<Check> {
  const step = 'outbox'
  const letters = await outbox.list({ state: 'dead', limit: MAX_LETTERS }, at)
  if (letters.length === 0) return ok(step, 'There are no dead letters.')
  const count = letters.length < MAX_LETTERS ? letters.length : `${MAX_LETTERS} or more`
  return warning(step, `Dead letters: ${count}.`, 'Run account-flows outbox list --state dead.')
}

/** @param cost - of the dearest stored hash that this process compared, where it can be told by time. `undefined`: none. */
export function storedHashesCheck(cost: number | undefined, bcryptCost: number): Check | undefined {
  if (cost === undefined) return undefined
  const message = `A stored hash has the cost ${cost}, and bcryptCost is ${bcryptCost}: logins of its account can be told by their time.`
  const advice = `Hash that password again when its owner signs in, or set bcryptCost to ${cost - 2} or more.`
  return warning('stored_hashes', message, advice)
}

/** @param skewMs - how far this clock is ahead of the database. */
export function clockCheck(skewMs: number): Check {
  const step = 'clock'
  const seconds = `${(Math.abs(skewMs) / 1000).toFixed(1)} s`
  if (Math.abs(skewMs) <= CLOCK_WARNING_MS) return ok(step, 'This clock and the database agree.')
  const fault = Math.abs(skewMs) > CLOCK_FAILURE_MS ? failed : warning
  return fault(
    step,
    `The clock of this server is ${seconds} ${skewMs > 0 ? 'ahead of' : 'behind'} the database.`,
    'Use NTP on both machines: these clocks decide when links expire and sessions end.',
  )
}

/** Asks the service of `password_blocklist` once, about a password that it must know. `undefined`: none is used. */
export async function rangeCheck(settings: Settings, clock: Clock): Promise<Check | undefined> {
  const step = 'range_service'
  if (settings.passwordBlocklist !== 'pwned') return undefined
  const advice =
    'Check password_range_url, and whether this server may connect to it. Until then the list of the package judges alone.'
  try {
    const isKnown = await isInRange('password', settings.passwordRangeUrl, clock)
    if (isKnown) return ok(step, 'The range service answers, and knows a leaked password.')
    return warning(step, 'The range service does not know the most common password.', advice)
  } catch (error) {
    if (!(error instanceof RangeServiceError)) throw error
    return warning(step, `The range service cannot be asked (${error.message}).`, advice)
  }
}

/** Fetched from here: whether the world reaches it is another question. */
export async function baseUrlCheck(oauthUrl: string, clock: Clock): Promise<Check> {
  const step = 'base_url'
  const url = `${oauthUrl}/.well-known/openid-configuration`
  const advice = 'Check baseUrl and oauthPath, the proxy in front, and its certificate.'
  const { signal, cancel } = timeout(clock, REACH_MS)
  try {
    const response = await fetch(url, { redirect: 'manual', signal })
    const found: unknown = await response.json().catch(unlessLate)
    const issuer: unknown = Reflect.get(Object(found), 'issuer')
    if (response.status !== 200) return failed(step, `${url} answers ${response.status}.`, advice)
    if (issuer === oauthUrl) return ok(step, `${oauthUrl} answers, and is the issuer.`)
    return failed(step, `Another service answers at ${url}, not this issuer.`, advice)
  } catch (error) {
    return failed(step, `${url} cannot be reached from this server (${codeOf(error)}).`, advice)
  } finally {
    cancel()
  }
}

export function ok(step: string, message: string): Check {
  return { step, status: 'ok', message }
}

export function warning(step: string, message: string, advice: string): Check {
  return { step, status: 'warning', message, advice }
}

export function failed(step: string, message: string, advice: string): Check {
  return { step, status: 'failed', message, advice }
}

export function skipped(step: string): Check {
  return { step, status: 'skipped', message: 'Not tried.' }
}

function unlessLate(error: unknown): undefined {
  if (error instanceof Error && error.name === 'TimeoutError') throw error
}

/** A code alone: messages may quote addresses and credentials. */
export function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown reason'
  if (error.name === 'TimeoutError') return 'no answer in time'
  return reachCodeOf(error, error.name)
}
