import type { Command } from 'commander'

export function withExamples(command: Command, ...lines: string[]): Command {
  const shown = lines.map((line) => `  $ account-flows ${line}`.trimEnd())
  return command.addHelpText('after', ['', 'Example:', ...shown].join('\n'))
}
