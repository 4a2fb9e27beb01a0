/** What a check answers, and the checks of keys and database, which `doctor` runs. */
import * as z from 'zod'
import { reachCodeOf } from '../errors.ts'
import { finding, type Finding } from '../mail/sending.ts'
import { MIN_KEY_BYTES } from '../options.ts'
import { unmetBy } from '../settings/rules.ts'
import type { SettingsKeeper } from '../settings/settings.ts'
import type { Settings } from '../settings/table.ts'
import type { AccountFlowsStore } from '../store/index.ts'
import { inTime, type AdminParts } from './operation.ts'
import { object, optional, text } from './schema.ts'
import { MIN_ADMIN_TOKEN_LENGTH } from './options.ts'

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

export function reportOf(checks: Check[]) {
  return { ok: checks.every(({ status }) => status !== 'failed'), checks }
}

/** Only the code of an error: messages may quote addresses and credentials. */
export function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown reason'
  if (error.name === 'TimeoutError') return 'no answer in time'
  return reachCodeOf(error, error.name)
}

/** The checks that the doctor makes in the database, one after the other. If it does not answer, the others are skipped. */
export async function databaseChecks(parts: AdminParts): Promise<Check[]> {
  const { store, processes, settingsKeeper, settings, clock } = parts
  const now = () => clock.now().getTime()
  const askedAt = now()
  const storeTime = await inTime(clock, store.now()).catch(codeOf)
  const answeredAt = now()
  const isLost = typeof storeTime === 'string'
  const skewMs = isLost ? 0 : (askedAt + answeredAt) / 2 - storeTime.getTime()
  const advice = 'Check that it runs, and that this server can connect to it.'
  const database = isLost
    ? finding('failed', `The database cannot be reached (${storeTime}).`, advice)
    : finding('ok', `The database answers in ${answeredAt - askedAt} ms.`)
  async function look(step: string, find: () => Promise<Finding>): Promise<Check> {
    if (isLost) return { step, ...finding('skipped', 'Not tried.') }
    // The report is complete even if a check fails to run.
    const advice = 'Check the rights of this server in the database, and try again.'
    const unread = (error: unknown) =>
      finding('failed', `This could not be checked (${codeOf(error)}).`, advice)
    return { step, ...(await inTime(clock, find()).catch(unread)) }
  }
  const keys = await look('keys', async () => ringsCheck(await processes.keyRings()))
  return [
    { ...keys, ...weakKeyCheck(parts) },
    { step: 'database', ...database },
    await look('indexes', () => indexCheck(store)),
    await look('clock', async () => clockCheck(skewMs)),
    await look('secrets', () => secretsCheck(settingsKeeper)),
    await look('settings', () => settingsCheck(settingsKeeper)),
    await look('recommended', async () => recommendedCheck(settings())),
    await look('outbox', () => outboxCheck(parts)),
  ]
}

/** Whether each process accepts what every other process signs and seals, and whether a rotation may take its next step. */
function ringsCheck(rings: readonly string[][]): Finding {
  const all = rings.length
  const share = (those: readonly string[][]) => `in ${those.length} of ${all} processes`
  const verifies = (key: string) => `${key} ${share(rings.filter((ring) => ring.includes(key)))}`
  const signs = (key: string) => `${key} ${share(rings.filter(([first]) => first === key))}`
  const known = [...new Set(rings.flat())].toSorted()
  const signing = known.filter((key) => rings.some(([first]) => first === key))
  const partly = known.filter((key) => !rings.every((ring) => ring.includes(key)))
  const missing = signing.filter((key) => partly.includes(key))
  if (missing.length > 0) {
    const message = `A process lacks a key that another one signs with: ${missing.map(verifies).join(', ')}.`
    const advice = 'Add each of these keys at the end of the ring, in every process that lacks it.'
    return finding('failed', message, advice)
  }
  if (partly.length > 0) {
    const message = `Every process knows the keys that sign. Of the other keys: ${partly.map(verifies).join(', ')}.`
    const advice = 'Give every process the same keys before you put one of these first.'
    return finding('warning', message, advice)
  }
  if (signing.length > 1) {
    const message = `Every process knows all keys, but the first keys differ: ${signing.map(signs).join(', ')}.`
    const advice = 'Put the same key first in every process, then run account-flows keys rotate.'
    return finding('warning', message, advice)
  }
  const [front, ...others] = rings[0] ?? []
  const processes = all === 1 ? 'The one process signs' : `All ${all} processes sign`
  const verified = others.length > 0 ? `, and also verify with ${others.join(', ')}` : ''
  const message = `${processes} with the key ${front}${verified}.`
  return finding('ok', message)
}

/** `undefined`: each key and token is long enough. */
function weakKeyCheck({ options: { secrets, adminTokens } }: AdminParts): Finding | undefined {
  const isShort = secrets.some((key) => key.length < MIN_KEY_BYTES)
  const isGuessable = adminTokens.some(({ token }) => token.length < MIN_ADMIN_TOKEN_LENGTH)
  if (!isShort && !isGuessable) return undefined
  const message = isShort
    ? `A key of the ring has fewer than ${MIN_KEY_BYTES} bytes.`
    : `An admin token has fewer than ${MIN_ADMIN_TOKEN_LENGTH} characters.`
  const advice = 'Make a new one from 32 random bytes. Put a new key at the end of the ring first.'
  return finding('failed', message, advice)
}

async function indexCheck(store: AccountFlowsStore): Promise<Finding> {
  const { wrongIndexes, isVolatile, isDurable } = await store.inspect()
  if (wrongIndexes && wrongIndexes.length > 0) {
    const message = `Indexes are missing or have other options: ${wrongIndexes.join(', ')}.`
    const advice =
      'Drop the existing indexes with these names, then restart: start() creates them again.'
    return finding('failed', message, advice)
  }
  if (isVolatile) {
    const message = 'All data is in the memory of this process, and is lost when it ends.'
    return finding('warning', message, 'Use mongoStore(db) or postgresStore(pool) in production.')
  }
  if (!isDurable) {
    const message =
      'After a crash the database may have forgotten the last writes: a used link may work again.'
    return finding('warning', message, 'Set synchronous_commit to on.')
  }
  if (!wrongIndexes) return finding('skipped', 'This store does not report its indexes.')
  return finding('ok', 'All indexes of the store exist. The indexes of your users are not checked.')
}

const CLOCK_WARNING_MS = 1_000
const CLOCK_FAILURE_MS = 60_000

/** @param skewMs - how many milliseconds this clock is ahead of the database. */
function clockCheck(skewMs: number): Finding {
  const ms = Math.abs(skewMs)
  if (ms <= CLOCK_WARNING_MS) return finding('ok', 'This clock and the database agree.')
  const where = skewMs > 0 ? 'ahead of' : 'behind'
  const message = `The clock of this server is ${(ms / 1000).toFixed(1)} s ${where} the database.`
  const advice = 'Use NTP on both machines: these clocks decide when links expire and sessions end.'
  return finding(ms > CLOCK_FAILURE_MS ? 'failed' : 'warning', message, advice)
}

async function secretsCheck({ reseal }: SettingsKeeper): Promise<Finding> {
  const outcome = await reseal({ isDryRun: true })
  if (outcome === 'unreadable') return finding('skipped', 'Not tried.')
  const { resealed, unreadable } = outcome
  if (unreadable.length > 0) {
    const advice = 'Put the old key back after the first key, or set the value again.'
    return finding('failed', `No key of the ring opens ${unreadable.join(', ')}.`, advice)
  }
  if (resealed.length === 0)
    return finding('ok', 'Stored secrets are encrypted with the first key.')
  const message = `${resealed.join(', ')}: encrypted with an older key of the ring, which is still needed.`
  const advice = 'When all processes have the same first key, run account-flows keys rotate.'
  return finding('warning', message, advice)
}

async function settingsCheck(settings: SettingsKeeper): Promise<Finding> {
  await settings.refresh()
  const faults = settings.faults().map(({ key, problem }) => `${key}: ${problem}`)
  if (faults.length === 0) return finding('ok', 'All stored settings are valid.')
  const advice =
    'Use account-flows settings set or unset for a value that is not valid. An unreadable record: repair or delete it in the database.'
  return finding('failed', `${faults.join('. ')}.`, advice)
}

function recommendedCheck(settings: Settings): Finding {
  const better = unmetBy(settings).map(
    ({ name, value, reason }) => `${name}: ${value} is recommended, so that ${reason}`,
  )
  if (better.length === 0) return finding('ok', 'The settings are as recommended, or stricter.')
  const advice =
    'See the changes with account-flows settings apply recommended --dry-run. To make them, leave --dry-run out.'
  return finding('advice', `${better.join('. ')}.`, advice)
}

const MAX_LETTERS = 100

async function outboxCheck({ store, clock }: AdminParts): Promise<Finding> {
  const letters = await store.outbox.list({ state: 'dead', limit: MAX_LETTERS }, clock.now())
  if (letters.length === 0) return finding('ok', 'There are no dead letters.')
  const count = letters.length < MAX_LETTERS ? letters.length : `${MAX_LETTERS} or more`
  const advice = 'Run account-flows outbox list --state dead.'
  return finding('warning', `Dead letters: ${count}.`, advice)
}
