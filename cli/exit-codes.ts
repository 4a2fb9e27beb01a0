import { AdminApiError } from '../src/admin/client.ts'

export const exitCodes = {
  done: 0,
  refused: 1,
  usage: 2,
  unreachable: 3,
  notAllowed: 4,
} as const

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

export const exitCodesHelp = `
Exit codes:
  0  done
  1  refused or invalid, a check failed, a mail was not sent, or work is left
  2  wrong usage
  3  no admin API could be reached
  4  not allowed: wrong token, or too many requests`

/** Ends the program with a sentence. It has a stable code, and never a secret in its message. */
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

export function refused(code: string, message: string): CliError {
  return new CliError(exitCodes.refused, code, message)
}

export function usageError(message: string): CliError {
  return new CliError(exitCodes.usage, 'usage', message)
}

const NO_ANSWER = new Set(['unreachable', 'aborted', 'not_an_admin_api'])

export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof CliError) return error.exitCode
  if (!(error instanceof AdminApiError)) return exitCodes.refused
  const { code, status = 0 } = error
  if (NO_ANSWER.has(code) || [502, 503, 504].includes(status)) return exitCodes.unreachable
  return [401, 403, 429].includes(status) ? exitCodes.notAllowed : exitCodes.refused
}

/** In place of what the server says, by the status of its answer. */
const refusals: { [status: number]: string } = {
  401: 'The server does not accept this token. Is it the admin token of this server, and has it not expired?',
  429: 'There were too many requests with a wrong token. Wait a minute, and try again.',
}

/** What a person is told. */
export function messageOf(error: AdminApiError): string {
  return (error.problem && refusals[error.status ?? 0]) ?? error.message
}
