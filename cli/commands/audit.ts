import { Option, type Command } from 'commander'
import { AUDIT_EVENT_TYPES, type AuditEventType } from '../../src/ports/audit-event-types.ts'
import { connect } from '../connection.ts'
import { eventText } from '../events.ts'
import { withExamples } from '../examples.ts'
import { followAudit, type AuditFilter } from '../follow-audit.ts'
import { outputOf } from '../output.ts'
import { wholeNumber } from '../whole-number.ts'

interface TailOptions {
  lines: number
  follow?: true
  account?: string
  type?: AuditEventType[]
}

export function addAudit(audit: Command): void {
  withExamples(audit, 'audit tail --follow')

  const tail = audit
    .command('tail')
    .description('Show the last events, newest last.')
    .option('-n, --lines <n>', 'how many', wholeNumber(0, 1000), 20)
    .option('-f, --follow', 'show new events as they come, until Ctrl-C')
    .option('--account <id>', 'only those of one account')
    .addOption(
      new Option('--type <type...>', 'only those of these types').choices(AUDIT_EVENT_TYPES),
    )
    .action(tailAudit)
  withExamples(tail, 'audit tail -n 50', 'audit tail -f --type password_reset_completed')
}

async function tailAudit({ lines, follow, account, type }: TailOptions, command: Command) {
  const output = outputOf(command)
  const connection = await connect(command)
  const filter: AuditFilter = {
    ...(account !== undefined && { account_id: account }),
    ...(type !== undefined && { type }),
  }
  const { events } = await connection.admin.listAudit({ ...filter, limit: Math.max(lines, 1) })
  const shown = events.slice(0, lines).toReversed()
  if (follow) {
    for (const event of shown) output.entry(event, eventText)
    await followAudit(connection, { filter, known: events, output })
  } else if (output.isJson || shown.length > 0) {
    output.answer({ events: shown }, ({ events }) => events.map(eventText).join('\n'))
  } else output.note('There is no such event.')
}
