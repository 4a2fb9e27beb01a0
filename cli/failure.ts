/** How a command ends before it is done. No message repeats what the user typed: it may be a secret. */
import { CommanderError } from 'commander'
import { AdminApiError, type Problem } from '../src/admin/client.ts'
import {
  exitCodes,
  plain,
  plainAnswer,
  plainJson,
  plainLines,
  widthOf,
  type ExitCode,
  type Screen,
} from './output.ts'
import { fitted, linesOf, table } from './table.ts'

/** Ends the program with a sentence. Its code is stable. */
export class CliError extends Error {
  readonly exitCode: ExitCode
  readonly code: string

  constructor(exitCode: ExitCode, code: string, message: string) {
    super(message)
    this.name = 'CliError'
    this.exitCode = exitCode
    this.code = code
  }
}

export const refused = (code: string, message: string) =>
  new CliError(exitCodes.refused, code, message)
export const usageError = (message: string) => new CliError(exitCodes.usage, 'usage', message)

const NO_ANSWER = new Set(['unreachable', 'aborted', 'not_an_admin_api'])

export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof CliError) return error.exitCode
  if (!(error instanceof AdminApiError)) return exitCodes.refused
  const { code, status = 0 } = error
  if (NO_ANSWER.has(code) || [502, 503, 504].includes(status)) return exitCodes.unreachable
  return [401, 403, 429].includes(status) ? exitCodes.notAllowed : exitCodes.refused
}

/** Sentences in place of the server's, by the status of its answer. */
const refusals: { [status: number]: string } = {
  401: 'The server does not accept this token. Is it the admin token of this server, and has it not expired?',
  429: 'There were too many requests with a wrong token. Wait a minute, and try again.',
}

export function messageOf(error: AdminApiError): string {
  return (error.problem && refusals[error.status ?? 0]) ?? error.message
}

/** Prints what went wrong, and answers the exit code. */
export function tellFailure(error: unknown, stderr: Screen, isJson: boolean): ExitCode {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return exitCodes.done
    // Commander has printed the help already.
    if (error.code === 'commander.help') return exitCodes.usage
    return tellFailure(usageError(withoutValues(error.message)), stderr, isJson)
  }
  const columns = widthOf(stderr)
  stderr.write(`${isJson ? jsonOf(error) : fitted(textOf(error, columns), columns)}\n`)
  return exitCodeOf(error)
}

/** Removes the mistyped text, which may be a secret, and keeps the suggestion. */
function withoutValues(message: string): string {
  return message
    .replace(/^error: /, '')
    .replace(/^unknown (command|option) '.*'(?:\n\((.*\?)\))?$/s, unknownText)
    .replace(/(argument|value) '.*' is invalid/s, '$1 is invalid')
}

function unknownText(_: string, what: string, meant: string | undefined): string {
  if (meant !== undefined) return `There is no such ${what}. ${meant}`
  const hyphens = what === 'option' ? ' Put "--" before a value that begins with a hyphen.' : ''
  return `There is no such ${what}: see --help.${hyphens}`
}

function jsonOf(error: unknown): string {
  const from = error instanceof AdminApiError ? error : undefined
  const { errors, candidates } = from?.problem ?? {}
  return plainJson({
    error: {
      code: from?.code ?? (error instanceof CliError ? error.code : 'unexpected'),
      message: rawMessage(error),
      status: from?.status,
      errors,
      candidates,
    },
  })
}

function textOf(error: unknown, columns: number | undefined): string {
  if (!(error instanceof AdminApiError)) return plainLines(rawMessage(error))
  const { errors = [], candidates = [] }: Partial<Problem> = plainAnswer(error.problem ?? {})
  const rows = candidates.map(({ id, username }) => [id, username])
  return linesOf(
    plain(messageOf(error)),
    ...errors.map(({ key, expected, got }) => `${key}: expected ${expected}, got ${got}`),
    ...errors.flatMap(({ key, got }) => hostAndPort(key, got)),
    rows.length > 0 && `\n${table(['id', 'username'], rows, columns)}`,
  )
}

const rawMessage = (error: unknown) => (error instanceof Error ? error.message : String(error))

/** If the user gave a host with its port, the commands that set both. */
function hostAndPort(key: string, got: string): string[] {
  const [, host, port] = /^"\[?([\w.-]+|[\da-f:.]+)\]?:(\d{1,5})"$/i.exec(got) ?? []
  if (key !== 'smtp_host' || host === undefined) return []
  return [
    'Set them apart:',
    `  account-flows settings set smtp_host ${host}`,
    `  account-flows settings set smtp_port ${port}`,
  ]
}
