import { CliError, exitCodes, usageError } from './exit-codes.ts'
import { askYes, canAsk } from './prompt.ts'

/** Asks before what cannot be taken back; `--yes` is the answer where nobody can be asked. */
export async function confirm(question: string, isConfirmed: boolean | undefined): Promise<void> {
  if (isConfirmed) return
  if (!canAsk()) throw usageError('There is no terminal to ask at: confirm it with --yes.')
  if (!(await askYes(question))) {
    throw new CliError(exitCodes.refused, 'not_confirmed', 'Nothing was changed.')
  }
}
