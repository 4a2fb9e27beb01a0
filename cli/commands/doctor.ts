import type { Command } from 'commander'
import { withExamples } from '../arguments.ts'
import { connect } from '../connection.ts'
import { exitCodes } from '../exit-codes.ts'
import { ownChecks } from '../own-checks.ts'
import { checkText } from '../words.ts'
import type { Check } from '../../src/admin/client.ts'

export function addDoctor(doctor: Command): void {
  doctor
    .option(
      '--to <address>',
      'also check that the mail server accepts this address; no mail is sent',
    )
    .action(examine)
  withExamples(doctor, 'doctor', 'doctor --to me@example.com')
}

async function examine({ to }: { to?: string }, command: Command) {
  const connection = await connect(command)
  const { admin, output, run } = connection
  const checks: Check[] = []
  const tell = (check: Check) => {
    checks.push(check)
    if (!output.isJson) output.answer(check, (check) => checkText(check, output))
  }
  run.exitCode = await ownChecks(connection, tell)
  if (run.exitCode === exitCodes.done) {
    const report = await admin.runDoctor({ to })
    report.checks.forEach(tell)
  }
  const ok = checks.every(({ status }) => status !== 'failed')
  if (!ok) run.exitCode ||= exitCodes.refused
  if (output.isJson) output.answer({ ok, checks }, () => '')
}
