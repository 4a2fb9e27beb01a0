import { Option, type Command } from 'commander'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { timeSince, wholeNumber, withExamples } from '../arguments.ts'
import { connect, type Connection } from '../connection.ts'
import { exitCodeOf, exitCodes } from '../exit-codes.ts'
import type { Output } from '../output.ts'
import { eventText } from '../event-text.ts'
import { AdminApiError, type AuditEvent, type Operations } from '../../src/admin/client.ts'
import { AUDIT_EVENT_TYPES, type AuditEventType } from '../../src/ports/audit.ts'

const MOST = 1_000

interface TailOptions {
  lines?: number
  follow?: true
  account?: string
  since?: string
  type?: AuditEventType[]
}

export function addAudit(audit: Command): void {
  withExamples(audit, 'audit tail --follow')

  const tail = audit
    .command('tail')
    .description('Show the last events, newest last.')
    .option(
      '-n, --lines <n>',
      'how many events (default 20; with --since: all)',
      wholeNumber(0, MOST),
    )
    .option('-f, --follow', 'show new events as they come, until Ctrl-C')
    .option('--account <id>', 'only events of this account')
    .option('--since <time>', 'only events since then: 2h, or an ISO time', timeSince)
    .addOption(
      new Option('--type <type...>', 'only events of these types').choices(AUDIT_EVENT_TYPES),
    )
    .action(tailAudit)
  withExamples(
    tail,
    'audit tail -n 50',
    'audit tail --since 2h',
    'audit tail -f --type password_reset_completed',
  )
}

async function tailAudit({ lines, follow, account, since, type }: TailOptions, command: Command) {
  const connection = await connect(command)
  const { admin, output } = connection
  const filter: AuditFilter = { account_id: account, type }
  const most = lines ?? (since === undefined ? 20 : MOST)
  const query = { ...filter, recorded_from: since, limit: Math.max(most, 1) }
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

type AuditFilter = Omit<Operations['listAudit']['query'], 'limit' | 'recorded_from'>

const INTERVAL_MS = 1_000
/** An event may become visible after one that was recorded later, by another process. */
const OVERLAP_MS = 10_000

/**
 * Shows each new event once, until Ctrl-C, which ends the request under way too.
 *
 * @param known - the newest of those that there are, newest first.
 * @param shown - those of them that are shown, newest last.
 */
async function followAudit(
  connection: Connection,
  filter: AuditFilter,
  known: AuditEvent[],
  shown: AuditEvent[],
): Promise<void> {
  const { run, output } = connection
  const interruption = new AbortController()
  const { signal } = interruption
  const interrupt = () => interruption.abort()
  // Before anything is shown: whoever reads it may press Ctrl-C at once.
  run.io.once('SIGINT', interrupt)
  for (const event of shown) output.entry(event, eventText)
  try {
    await Promise.race([once(signal, 'abort'), follow(connection, filter, known, signal)])
  } finally {
    run.io.off('SIGINT', interrupt)
  }
}

async function follow(
  { admin, output }: Connection,
  filter: AuditFilter,
  known: AuditEvent[],
  signal: AbortSignal,
): Promise<never> {
  const oldest = known.at(-1)?.recorded_at
  let seen = new Set(known.map(({ id }) => id))
  let newest = known[0]?.recorded_at
  const warn = warnings(output)
  for (;;) {
    await sleep(INTERVAL_MS, undefined, { signal })
    const from = newest && new Date(Date.parse(newest) - OVERLAP_MS).toISOString()
    const query = { ...filter, limit: MOST, recorded_from: from }
    const answer = await admin.listAudit(query, { signal }).catch(unlessAway)
    warn('The server cannot be reached; still trying.', answer === undefined)
    const { events } = answer ?? { events: [] }
    if (events.length === 0) continue
    const fresh = events.filter(
      ({ id, recorded_at: at }) => !seen.has(id) && (oldest === undefined || at >= oldest),
    )
    warn(`Too many events: only the last ${MOST} of each second are shown.`, fresh.length === MOST)
    for (const event of fresh.toReversed()) output.entry(event, eventText)
    seen = new Set(events.map(({ id }) => id))
    newest = events[0]?.recorded_at
  }
}

/** Says each thing once, until it is no longer so. */
function warnings(output: Output) {
  const said = new Set<string>()
  return (text: string, isSo: boolean) => {
    if (isSo && !said.has(text)) output.note(text)
    if (isSo) said.add(text)
    else said.delete(text)
  }
}

/** The server is away while it starts anew. */
function unlessAway(error: unknown): undefined {
  const { status } = error instanceof AdminApiError ? error : {}
  const isAway = exitCodeOf(error) === exitCodes.unreachable || status === 500 || status === 429
  if (!isAway) throw error
}
