import { MIN_KEY_BYTES, type CheckedOptions } from '../options.ts'
import { ringsCheck } from '../crypto/keys.ts'
import { unmetBy } from '../settings/rules.ts'
import { codeOf, finding, type Check, type Finding } from './checks.ts'
import { inTime } from './in-time.ts'
import type { AdminParts } from './operation.ts'
import { MIN_ADMIN_TOKEN_LENGTH } from './options.ts'

const CLOCK_WARNING_MS = 1_000
const CLOCK_FAILURE_MS = 60_000
const MAX_LETTERS = 100

/** What the doctor looks at in the database, one check after the other. While it does not answer, all but its own are skipped. */
export async function databaseChecks(parts: AdminParts): Promise<Check[]> {
  const { store, clock } = parts
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
  async function look(step: string, find: (parts: AdminParts) => Promise<Finding>) {
    if (isLost) return { step, ...finding('skipped', 'Not tried.') }
    // The report is complete whatever happens meanwhile.
    const unread = (error: unknown) =>
      finding(
        'failed',
        `This could not be checked (${codeOf(error)}).`,
        'Check the rights of this server in the database, and try again.',
      )
    return { step, ...(await inTime(clock, find(parts)).catch(unread)) }
  }
  return [
    { ...(await look('keys', keysCheck)), ...weakKeyCheck(parts.options) },
    { step: 'database', ...database },
    await look('indexes', indexCheck),
    await look('clock', async () => clockCheck(skewMs)),
    await look('secrets', secretsCheck),
    await look('settings', settingsCheck),
    await look('recommended', recommendedCheck),
    await look('outbox', outboxCheck),
  ]
}

const keysCheck = async ({ keyRing }: AdminParts) => ringsCheck(await keyRing.all())

/** `undefined`: each is long enough. */
function weakKeyCheck({ secrets, adminTokens }: CheckedOptions): Finding | undefined {
  const isShort = secrets.some((key) => key.length < MIN_KEY_BYTES)
  const isGuessable = adminTokens.some(({ token }) => token.length < MIN_ADMIN_TOKEN_LENGTH)
  if (!isShort && !isGuessable) return undefined
  return finding(
    'failed',
    isShort
      ? `A key of the ring has fewer than ${MIN_KEY_BYTES} bytes.`
      : `An admin token has fewer than ${MIN_ADMIN_TOKEN_LENGTH} characters.`,
    'Make a new one from 32 random bytes. Put a new key at the end of the ring first.',
  )
}

async function indexCheck({ store }: AdminParts): Promise<Finding> {
  const { wrongIndexes, isVolatile, isDurable } = await store.inspect()
  if (wrongIndexes && wrongIndexes.length > 0) {
    return finding(
      'failed',
      `Indexes are missing or have other options: ${wrongIndexes.join(', ')}.`,
      'Drop the existing indexes with these names, then restart: start() creates them again.',
    )
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

async function secretsCheck({ settingsKeeper }: AdminParts): Promise<Finding> {
  const outcome = await settingsKeeper.reseal({ isDryRun: true })
  if (outcome === 'unreadable') return finding('skipped', 'Not tried.')
  const { resealed, unreadable } = outcome
  if (unreadable.length > 0) {
    const advice = 'Put the old key back after the first key, or set the value again.'
    return finding('failed', `No key of the ring opens ${unreadable.join(', ')}.`, advice)
  }
  if (resealed.length === 0)
    return finding('ok', 'Stored secrets are encrypted with the first key.')
  return finding(
    'warning',
    `${resealed.join(', ')}: encrypted with an older key of the ring, which is still needed.`,
    'When all processes have the same first key, run account-flows keys rotate.',
  )
}

async function settingsCheck({ settingsKeeper }: AdminParts): Promise<Finding> {
  await settingsKeeper.refresh()
  const faults = settingsKeeper.faults()
  if (faults.length === 0) return finding('ok', 'All stored settings are valid.')
  return finding(
    'failed',
    `${faults.map(({ key, problem }) => `${key}: ${problem}`).join('. ')}.`,
    'Use account-flows settings set or unset for a value that is not valid. An unreadable record: repair or delete it in the database.',
  )
}

async function recommendedCheck({ settings }: AdminParts): Promise<Finding> {
  const unmet = unmetBy(settings())
  if (unmet.length === 0) return finding('ok', 'The settings are as recommended, or stricter.')
  const better = unmet.map(
    ({ name, value, reason }) => `${name}: ${value} is recommended, so that ${reason}`,
  )
  return finding(
    'advice',
    `${better.join('. ')}.`,
    'See the changes with account-flows settings apply recommended --dry-run. To make them, leave --dry-run out.',
  )
}

async function outboxCheck({ store, clock }: AdminParts): Promise<Finding> {
  const letters = await store.outbox.list({ state: 'dead', limit: MAX_LETTERS }, clock.now())
  if (letters.length === 0) return finding('ok', 'There are no dead letters.')
  const count = letters.length < MAX_LETTERS ? letters.length : `${MAX_LETTERS} or more`
  const advice = 'Run account-flows outbox list --state dead.'
  return finding('warning', `Dead letters: ${count}.`, advice)
}

/** @param skewMs - how far this clock is ahead of the database. */
function clockCheck(skewMs: number): Finding {
  const ms = Math.abs(skewMs)
  if (ms <= CLOCK_WARNING_MS) return finding('ok', 'This clock and the database agree.')
  const where = skewMs > 0 ? 'ahead of' : 'behind'
  return finding(
    ms > CLOCK_FAILURE_MS ? 'failed' : 'warning',
    `The clock of this server is ${(ms / 1000).toFixed(1)} s ${where} the database.`,
    'Use NTP on both machines: these clocks decide when links expire and sessions end.',
  )
}
