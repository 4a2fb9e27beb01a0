import { setTimeout as sleep } from 'node:timers/promises'
import type { AdminClient, AuditEvent, Operations } from '../src/admin/client.ts'
import { eventText } from './events.ts'
import { exitCodeOf, exitCodes } from './exit-codes.ts'
import type { Output } from './output.ts'

export type AuditFilter = Omit<Operations['listAudit']['query'], 'limit' | 'recorded_from'>

const INTERVAL_MS = 1_000
/** An event may become visible after one that was recorded later, by another process. */
const OVERLAP_MS = 10_000
const MOST = 1_000

/**
 * Shows each new event once, until Ctrl-C.
 *
 * @param known - the newest of those that there are, newest first.
 */
export async function followAudit(
  admin: AdminClient,
  { filter, known, output }: { filter: AuditFilter; known: AuditEvent[]; output: Output },
): Promise<never> {
  process.once('SIGINT', () => process.exit(exitCodes.done))
  const oldest = known.at(-1)?.recorded_at
  let seen = new Set(known.map(({ id }) => id))
  let newest = known[0]?.recorded_at
  let isLost = false
  for (;;) {
    await sleep(INTERVAL_MS)
    const from = newest && new Date(Date.parse(newest) - OVERLAP_MS).toISOString()
    const query = { ...filter, limit: MOST, ...(from && { recorded_from: from }) }
    const events = await readEvents(admin, query)
    if (events === undefined && !isLost) output.note('The server cannot be reached; still trying.')
    isLost = events === undefined
    if (events === undefined || events.length === 0) continue
    const fresh = events.filter(
      ({ id, recorded_at: at }) => !seen.has(id) && (oldest === undefined || at >= oldest),
    )
    if (fresh.length === MOST) output.note(`There were more; the last ${MOST} are shown.`)
    for (const event of fresh.toReversed()) output.entry(event, eventText)
    seen = new Set(events.map(({ id }) => id))
    newest = events[0]?.recorded_at
  }
}

/** `undefined`: the server is away, as it is while it starts anew. */
async function readEvents(
  admin: AdminClient,
  query: Operations['listAudit']['query'],
): Promise<AuditEvent[] | undefined> {
  try {
    return (await admin.listAudit(query)).events
  } catch (error) {
    if (exitCodeOf(error) === exitCodes.unreachable) return undefined
    throw error
  }
}
