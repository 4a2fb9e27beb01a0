import { CommanderError } from 'commander'
import { adviceOn, CliError, exitCodeOf, exitCodes, type ExitCode } from './exit-codes.ts'
import { widthOf, type Screen } from './io.ts'
import { plainAnswer, plainJson } from './plain-text.ts'
import { fitted, table } from './table.ts'
import { AdminApiError, type Problem } from '../src/admin/client.ts'

/** Says what went wrong, and answers the exit code. */
export function tellFailure(error: unknown, stderr: Screen, isJson: boolean): ExitCode {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return exitCodes.done
    // It has printed the help already.
    if (error.code === 'commander.help') return exitCodes.usage
    const usage = new CliError(exitCodes.usage, 'usage', withoutValues(error.message))
    return tellFailure(usage, stderr, isJson)
  }
  const columns = widthOf(stderr)
  stderr.write(`${isJson ? jsonOf(error) : fitted(textOf(error, columns), columns)}\n`)
  return exitCodeOf(error)
}

/** What is mistyped may be a secret. What it may have been meant as stays. */
function withoutValues(message: string): string {
  return message
    .replace(/^error: /, '')
    .replace(/^unknown command '.*'/s, 'There is no such command: see --help.')
    .replace(
      /^unknown option '.*'/s,
      'There is no such option. Put "--" before a value that begins with a hyphen.',
    )
    .replace(/(argument|value) '.*' is invalid/s, '$1 is invalid')
}

function jsonOf(error: unknown): string {
  const from = error instanceof AdminApiError ? error : undefined
  const { errors, candidates } = from?.problem ?? {}
  return plainJson({
    error: {
      code: from?.code ?? (error instanceof CliError ? error.code : 'unexpected'),
      message: messageOf(error),
      status: from?.status,
      errors,
      candidates,
    },
  })
}

function textOf(error: unknown, columns: number | undefined): string {
  if (error instanceof CliError) return plainAnswer(error.message)
  const { problem, status = 0 } = error instanceof AdminApiError ? error : {}
  const { errors = [], candidates = [] }: Partial<Problem> = plainAnswer(problem ?? {})
  const advice = adviceOn[status]
  const rows = candidates.map(({ id, username }) => [id, username])
  return [
    plainAnswer(messageOf(error)),
    ...(advice === undefined ? [] : [advice]),
    ...errors.map(({ key, expected, got }) => `${key}: expected ${expected}, got ${got}`),
    ...(rows.length === 0 ? [] : ['', table(['id', 'username'], rows, columns)]),
  ].join('\n')
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
