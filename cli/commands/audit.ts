import { setTimeout as sleep } from 'node:timers/promises'
import { AdminApiError, type AuditEvent, type Operations } from '../../src/admin/client.ts'
import { AUDIT_EVENT_TYPES, type AuditEventType } from '../../src/contract/audit.ts'
import { option, row, timeSince, wholeNumber, type Connection } from '../command.ts'
import { eventText } from '../words.ts'
import { exitCodeOf } from '../failure.ts'
import { exitCodes } from '../output.ts'

const MAX_EVENTS = 1_000

interface TailOptions {
  lines?: number
  follow?: true
  account?: string
  since?: string
  type?: AuditEventType[]
}

export const auditCommands = [
  { name: 'audit', help: 'The audit log.' },
  row({
    name: 'audit tail',
    help: 'Show the last events, newest last.',
    options: [
      option('-n, --lines <n>', 'default 20; with --since: all', wholeNumber(0, MAX_EVENTS)),
      option('-f, --follow', 'show new events as they come, until Ctrl-C'),
      option('--account <id>', 'only events of this account'),
      option('--since <time>', 'only events since then: 2h, or an ISO time', timeSince),
      option('--type <type...>', 'only events of these types').choices(AUDIT_EVENT_TYPES),
    ],
    examples: [
      'audit tail -n 50',
      'audit tail --since 2h',
      'audit tail -f --type password_reset_completed',
    ],
    run: tailAudit,
  }),
]

async function tailAudit(given: TailOptions, connection: Connection): Promise<void> {
  const { lines, follow, account, since, type } = given
  const { admin, output } = connection
  const filter: AuditFilter = { account_id: account, type, recorded_from: since }
  const most = lines ?? (since === undefined ? 20 : MAX_EVENTS)
  const query = { ...filter, limit: Math.max(most, 1) }
  const { events } = await admin.listAudit(query)
  const shown = events.slice(0, most).toReversed()
  if (since !== undefined && shown.length === most) {
    output.note(`Only the last ${most} events are shown. There may be more.`)
  }
  if (follow) await followAudit(connection, filter, events, shown)
  else if (output.isJson || shown.length > 0) {
    output.answer({ events: shown }, ({ events }) => events.map(eventText).join('\n'))
  } else output.note('There is no such event.')
}

type AuditFilter = Omit<Operations['listAudit']['query'], 'limit'>

const INTERVAL_MS = 1_000
/** An event may become visible after one that was recorded later, by another process. */
const OVERLAP_MS = 10_000

/** Shows each new event once, until Ctrl-C, which also ends the request under way. `known` is newest first, `shown` is newest last. */
async function followAudit(
  { admin, run, output }: Connection,
  filter: AuditFilter,
  known: AuditEvent[],
  shown: AuditEvent[],
): Promise<void> {
  const interruption = new AbortController()
  const { signal } = interruption
  const interrupt = () => interruption.abort()
  // Before anything is shown, because the user may press Ctrl-C at once.
  run.io.once('SIGINT', interrupt)
  for (const event of shown) output.answer(event, eventText, 0)
  const oldest = known.at(-1)?.recorded_at ?? filter.recorded_from ?? ''
  let seen = known
  let isAway = false
  try {
    for (;;) {
      await sleep(INTERVAL_MS, undefined, { signal })
      const [newest] = seen
      const from = newest && new Date(Date.parse(newest.recorded_at) - OVERLAP_MS).toISOString()
      const query = { ...filter, limit: MAX_EVENTS, recorded_from: from ?? filter.recorded_from }
      const answer = await admin.listAudit(query, { signal }).catch(unlessAway)
      if (!answer && !isAway) output.note('The server cannot be reached; still trying.')
      isAway = !answer
      if (!answer?.events.length) continue
      const ids = new Set(seen.map(({ id }) => id))
      const fresh = answer.events.filter(({ id, recorded_at: at }) => !ids.has(id) && at >= oldest)
      if (fresh.length === MAX_EVENTS)
        output.note(`Too many events: of this second, only the last ${MAX_EVENTS} are shown.`)
      for (const event of fresh.toReversed()) output.answer(event, eventText, 0)
      seen = answer.events
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    run.io.off('SIGINT', interrupt)
  }
}

/** Goes on while the server is away, for example while it restarts. */
function unlessAway(error: unknown): undefined {
  const { code, status } = error instanceof AdminApiError ? error : {}
  const isAway = exitCodeOf(error) === exitCodes.unreachable || status === 500 || status === 429
  if (!isAway || code === 'aborted') throw error
}
