import type { Check } from '../../src/admin/client.ts'
import { checkText, reportEnd } from '../check-words.ts'
import { option, row } from '../command.ts'
import type { Connection } from '../connection.ts'
import { exitCodes } from '../exit-codes.ts'
import { ownChecks } from '../own-checks.ts'

export const doctorCommands = [
  row({
    name: 'doctor',
    help: 'Check the connection to the server. Then the server checks keys, database, clock, base URL and mail server.',
    options: [option('--to <address>', 'also ask the mail server if it accepts this address')],
    examples: ['doctor', 'doctor --to me@example.com'],
    run: examine,
  }),
]

async function examine({ to }: { to?: string }, connection: Connection): Promise<void> {
  const { admin, output, run } = connection
  const checks: Check[] = []
  const tell = (check: Check) => {
    checks.push(check)
    if (!output.isJson && check.status !== 'skipped')
      output.answer(check, (check) => checkText(check, output))
  }
  run.exitCode = await ownChecks(connection, tell)
  if (run.exitCode === exitCodes.done) {
    const report = await admin.runDoctor({ to })
    report.checks.forEach(tell)
  }
  const ok = checks.every(({ status }) => status !== 'failed')
  if (!ok) run.exitCode ||= exitCodes.refused
  output.answer({ ok, checks }, ({ checks }) => reportEnd(checks, output))
}
