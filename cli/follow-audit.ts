import { once } from 'node:events'
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
): Promise<void> {
  const stopped = new AbortController()
  process.once('SIGINT', () => stopped.abort())
  const oldest = known.at(-1)?.recorded_at
  let seen = new Set(known.map(({ id }) => id))
  let newest = known[0]?.recorded_at
  let isLost = false
  while (await isTimeForMore(stopped.signal)) {
    const from = newest && new Date(Date.parse(newest) - OVERLAP_MS).toISOString()
    const events = await Promise.race([
      readEvents(admin, { ...filter, limit: MOST, ...(from && { recorded_from: from }) }),
      once(stopped.signal, 'abort').then(() => []),
    ])
    if (events === undefined && !isLost) output.note('The server cannot be reached; still trying.')
    isLost = events === undefined
    if (events === undefined) continue
    if (events.length === MOST) output.note(`Only the last ${MOST} new events are shown.`)
    for (const event of events.toReversed()) {
      const isOld = oldest !== undefined && event.recorded_at < oldest
      if (!isOld && !seen.has(event.id)) output.entry(event, eventText)
    }
    if (events.length === 0) continue
    seen = new Set([...seen, ...events.map(({ id }) => id)])
    newest = events[0]?.recorded_at
  }
}

async function isTimeForMore(stopped: AbortSignal): Promise<boolean> {
  try {
    await sleep(INTERVAL_MS, undefined, { signal: stopped })
    return true
  } catch {
    return false
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
