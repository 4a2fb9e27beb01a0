import { CliError, exitCodes, usageError } from './exit-codes.ts'
import type { Io } from './io.ts'
import { askYes, canAsk } from './prompt.ts'

/** Asks before what cannot be taken back; `--yes` is the answer where nobody can be asked. */
export async function confirm(
  io: Io,
  question: string,
  isConfirmed: boolean | undefined,
): Promise<void> {
  if (isConfirmed) return
  if (!canAsk(io)) throw usageError('There is no terminal to ask at: confirm it with --yes.')
  if (!(await askYes(io, question))) {
    throw new CliError(exitCodes.refused, 'not_confirmed', 'Nothing was changed.')
  }
}
