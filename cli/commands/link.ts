import { Argument } from 'commander'
import type { LinkExplanation } from '../../src/admin/client.ts'
import { row, type Connection } from '../command.ts'
import { eventText, withCommandLines } from '../words.ts'
import { usageError } from '../failure.ts'
import type { Output } from '../output.ts'
import { canAsk, readStdin } from '../input.ts'
import { factLines, factsOf, linesOf } from '../table.ts'

export const linkCommands = [
  { name: 'link', help: 'Links from mails.' },
  row({
    name: 'link explain',
    help: 'Explain a link from a mail: what it is, and what happened to it. The link stays usable.',
    argument: new Argument('[link]', 'the link; - reads it from stdin; without it, you are asked'),
    examples: ['link explain', 'link explain - < link.txt'],
    check({ link }, { io }) {
      if (link === undefined && !canAsk(io))
        throw usageError('Which link? Without a terminal, give - and write the link to stdin.')
    },
    run: async ({ link }: { link?: string }, connection) =>
      connection.admin.explainLink({ link: await readLink(link, connection) }),
    text: explanationText,
    isRefusal: ({ state }) => state === 'not_a_link',
  }),
]

async function readLink(link = '-', { output, run }: Connection): Promise<string> {
  if (link === '-') return (await readStdin(run, 'Link: ')).trim()
  output.note(
    'Note: a link that still works is a secret, and this one is now in your shell history.',
  )
  return link.trim()
}

function explanationText(link: LinkExplanation, output: Output): string {
  const { summary, advice, history, ...fields } = link
  return linesOf(
    output.paint('bold', summary),
    ...factLines(factsOf(fields), '  '),
    history.length > 0 && 'History:',
    ...history.map((event) => `  ${eventText(event)}`),
    withCommandLines(advice),
  )
}
