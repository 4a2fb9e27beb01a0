import type { Command } from 'commander'
import { withExamples } from '../arguments.ts'
import { connect } from '../connection.ts'
import { exitCodes, usageError } from '../exit-codes.ts'
import { runOf } from '../io.ts'
import type { Output } from '../output.ts'
import { canAsk } from '../prompt.ts'
import { readStdin } from '../secrets.ts'
import { factLines, type Fact } from '../table.ts'
import { eventText } from '../event-text.ts'
import type { LinkExplanation } from '../../src/admin/client.ts'

export function addLink(link: Command): void {
  withExamples(link, 'link explain')

  const explain = link
    .command('explain')
    .description(
      'Explain a link from a mail: what it is, and what happened to it. The link stays usable.',
    )
    .argument('[link]', 'the link, or - to read it from stdin; without it, you are asked')
    .action(explainLink)
  withExamples(explain, 'link explain', 'link explain - < link.txt')
}

async function explainLink(given: string | undefined, _: unknown, command: Command) {
  const run = runOf(command)
  if (given === undefined && !canAsk(run.io)) {
    throw usageError('Which link? Without a terminal, give - and write the link to stdin.')
  }
  const { admin, output } = await connect(command)
  const isArgument = given !== undefined && given !== '-'
  if (isArgument) {
    output.note(
      'Note: a link that still works is a secret, and this one is now in your shell history.',
    )
  }
  const link = (isArgument ? given : await readStdin(run, 'Link: ')).trim()
  const explanation = await admin.explainLink({ link })
  output.answer(explanation, (explanation) => textOf(explanation, output))
  if (explanation.state === 'not_a_link') run.exitCode = exitCodes.refused
}

function textOf(link: LinkExplanation, output: Output): string {
  const facts: Fact[] = [
    ['state', link.state],
    ['kind', link.kind],
    ['signature', link.signature],
    ['altered', link.altered.join(', ') || undefined],
    ['account', link.account_id],
    ['client', link.client_id],
    ['made', link.created_at],
    ['expires', link.state === 'void' ? undefined : link.expires_at],
    ['used', link.used_at],
    ['invalidated', link.invalidated_at],
    ['completed', link.completed_at],
    ['mail', link.mail_id],
  ]
  const history = link.history.map((event) => `  ${eventText(event)}`)
  return [
    output.paint('bold', link.summary),
    ...factLines(facts, '  '),
    ...(history.length === 0 ? [] : ['History:', ...history]),
    link.advice,
  ].join('\n')
}
