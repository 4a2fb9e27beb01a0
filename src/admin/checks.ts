import * as z from 'zod'
import { reachCodeOf } from '../answer.ts'
import type { Clock } from '../clock.ts'
import { ringsCheck } from '../crypto/key-rings.ts'
import type { AccountFlowsStore } from '../records/index.ts'
import { unmetBy } from '../settings/recommended.ts'
import type { SettingsKeeper } from '../settings/settings.ts'
import { inTime } from './in-time.ts'
import type { AdminParts } from './operation.ts'
import { object, optional, text } from './schema.ts'

const CLOCK_WARNING_MS = 1_000
const CLOCK_FAILURE_MS = 60_000
const MAX_LETTERS = 100

export type Check = z.infer<typeof Check>
export const Check = object('One check. After a failed check, the rest of its group is skipped.', {
  step: text,
  status: z
    .enum(['ok', 'advice', 'warning', 'failed', 'skipped'])
    .describe('advice: nothing is wrong, but another value is recommended.'),
  message: text.describe('What is so.'),
  reply: optional(text, 'What the other side said, without anything secret.'),
  advice: optional(text, 'What to do.'),
})

export type CheckReport = z.infer<typeof CheckReport>
export const CheckReport = object('What the checks found.', {
  ok: z.boolean().describe('Whether none failed.'),
  checks: z.array(Check),
})

/** What a check found; who asks knows which check it is. */
export type Finding = Omit<Check, 'step'>

export function reportOf(checks: Check[]) {
  return { ok: checks.every(({ status }) => status !== 'failed'), checks }
}

export function ok(message: string): Finding {
  return { status: 'ok', message }
}

export function warning(message: string, advice: string): Finding {
  return { status: 'warning', message, advice }
}

export function failed(message: string, advice: string): Finding {
  return { status: 'failed', message, advice }
}

export const SKIPPED: Finding = { status: 'skipped', message: 'Not tried.' }

/** A code alone: messages may quote addresses and credentials. */
export function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown reason'
  if (error.name === 'TimeoutError') return 'no answer in time'
  return reachCodeOf(error, error.name)
}

/**
 * What the doctor looks at in the database, one check after the other. That of the keys is first. While the database does not answer,
 * all but its own are skipped.
 */
export async function databaseChecks(parts: AdminParts): Promise<[Check, ...Check[]]> {
  const { store, settings, clock } = parts
  const now = () => clock.now().getTime()
  const askedAt = now()
  const storeTime = await inTime(clock, store.now()).catch(codeOf)
  const answeredAt = now()
  const isLost = typeof storeTime === 'string'
  const skewMs = isLost ? 0 : (askedAt + answeredAt) / 2 - storeTime.getTime()
  const advice = 'Check that it runs, and that this server can connect to it.'
  const database = isLost
    ? failed(`The database cannot be reached (${storeTime}).`, advice)
    : ok(`The database answers in ${answeredAt - askedAt} ms.`)
  const look = async (step: string, find: () => Promise<Finding>) => ({
    step,
    ...(isLost ? SKIPPED : await orFailed(clock, find)),
  })
  return [
    await look('keys', async () => ringsCheck(await parts.keyRing.all())),
    { step: 'database', ...database },
    await look('indexes', () => indexCheck(store)),
    await look('clock', async () => clockCheck(skewMs)),
    await look('secrets', () => secretsCheck(settings)),
    await look('settings', () => settingsCheck(settings)),
    await look('recommended', async () => recommendedCheck(settings)),
    await look('outbox', () => outboxCheck(store, clock.now())),
  ]
}

/** The report is complete whatever happens meanwhile. */
async function orFailed(clock: Clock, find: () => Promise<Finding>): Promise<Finding> {
  try {
    return await inTime(clock, find())
  } catch (error) {
    const advice = 'Check the rights of this server in the database, and try again.'
    return failed(`This could not be checked (${codeOf(error)}).`, advice)
  }
}

async function indexCheck(store: AccountFlowsStore): Promise<Finding> {
  const { wrongIndexes, isVolatile, isDurable } = await store.inspect()
  if (wrongIndexes && wrongIndexes.length > 0) {
    const message = `Indexes are missing or have other options: ${wrongIndexes.join(', ')}.`
    const advice =
      'Drop the existing indexes with these names, then restart: start() creates them again.'
    return failed(message, advice)
  }
  if (isVolatile) {
    const message = 'All data is in the memory of this process, and is lost when it ends.'
    return warning(message, 'Use mongoStore(db) or postgresStore(pool) in production.')
  }
  if (!isDurable) {
    const message =
      'After a crash the database may have forgotten the last writes: a used link may work again.'
    return warning(message, 'Set synchronous_commit to on.')
  }
  if (!wrongIndexes) return { ...SKIPPED, message: 'This store does not report its indexes.' }
  return ok('All indexes of the store exist. The indexes of your users are not checked.')
}

/** What the doctor says of the stored secrets. */
async function secretsCheck(settings: SettingsKeeper): Promise<Finding> {
  const outcome = await settings.reseal({ isDryRun: true })
  if (outcome === 'unreadable') return SKIPPED
  const { resealed, unreadable } = outcome
  if (unreadable.length > 0) {
    const advice = 'Put the old key back after the first key, or set the value again.'
    return failed(`No key of the ring opens ${unreadable.join(', ')}.`, advice)
  }
  if (resealed.length === 0) return ok('Stored secrets are encrypted with the first key.')
  return warning(
    `${resealed.join(', ')}: encrypted with an older key of the ring, which is still needed.`,
    'When all processes have the same first key, run account-flows keys rotate.',
  )
}

/** What the doctor says of everything that is stored of the settings. */
async function settingsCheck(settings: SettingsKeeper): Promise<Finding> {
  await settings.refresh()
  const faults = settings.faults()
  if (faults.length === 0) return ok('All stored settings are valid.')
  return failed(
    `${faults.map(({ key, problem }) => `${key}: ${problem}`).join('. ')}.`,
    'Use account-flows settings set or unset for a value that is not valid. An unreadable record: repair or delete it in the database.',
  )
}

/** What the doctor says of settings that are good, and could be better. */
function recommendedCheck(settings: SettingsKeeper): Finding {
  const unmet = unmetBy(settings.current())
  if (unmet.length === 0) return ok('The settings are as recommended, or stricter.')
  const message = unmet
    .map(({ name, value, reason }) => `${name}: ${value} is recommended, so that ${reason}`)
    .join('. ')
  const advice =
    'See the changes with account-flows settings apply recommended --dry-run. To make them, leave --dry-run out.'
  return { status: 'advice', message: `${message}.`, advice }
}

async function outboxCheck({ outbox }: AccountFlowsStore, at: Date): Promise<Finding> {
  const letters = await outbox.list({ state: 'dead', limit: MAX_LETTERS }, at)
  if (letters.length === 0) return ok('There are no dead letters.')
  const count = letters.length < MAX_LETTERS ? letters.length : `${MAX_LETTERS} or more`
  return warning(`Dead letters: ${count}.`, 'Run account-flows outbox list --state dead.')
}

/** @param skewMs - how far this clock is ahead of the database. */
function clockCheck(skewMs: number): Finding {
  const seconds = `${(Math.abs(skewMs) / 1000).toFixed(1)} s`
  if (Math.abs(skewMs) <= CLOCK_WARNING_MS) return ok('This clock and the database agree.')
  const fault = Math.abs(skewMs) > CLOCK_FAILURE_MS ? failed : warning
  return fault(
    `The clock of this server is ${seconds} ${skewMs > 0 ? 'ahead of' : 'behind'} the database.`,
    'Use NTP on both machines: these clocks decide when links expire and sessions end.',
  )
}
