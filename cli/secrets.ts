import { readFile } from 'node:fs/promises'
import { reachCodeOf } from '../src/errors.ts'
import { usageError } from './exit-codes.ts'
import type { Io, Run } from './io.ts'
import { utf8Text } from './plain-text.ts'
import { ask, canAsk } from './prompt.ts'

/** What a refusal says, in place of what was given. */
export const WAYS_TO_GIVE_A_SECRET = `Give it in one of these ways:
  account-flows settings set smtp_password                      asks for it, without showing it
  account-flows settings set --from-stdin smtp_password         reads it from stdin
  account-flows settings set --from-file smtp_password=<path>   reads it from a file
  account-flows settings set --from-env smtp_password=<NAME>    reads it from an environment variable`

/** All of stdin, without its last line break; at a terminal one line is asked for, and not shown. It can be read once. */
export async function readStdin(run: Run, question: string): Promise<string> {
  if (run.isStdinRead) throw usageError('Only one thing can be read from stdin.')
  run.isStdinRead = true
  if (canAsk(run.io)) return ask(run.io, question)
  const chunks: Buffer[] = []
  for await (const chunk of run.io.stdin) chunks.push(Buffer.from(chunk))
  return textOf(Buffer.concat(chunks), 'Stdin')
}

/**
 * A text file, without its last line break.
 *
 * @param what - names the file in messages; its path may be a secret that was meant to be in it.
 */
export async function readTextFile(path: string, what: string): Promise<string> {
  const bytes = await readFile(path).catch((error: unknown) => {
    throw usageError(`${what} cannot be read (${reachCodeOf(error)}).`)
  })
  return textOf(bytes, what)
}

/** @param what - names the variable in messages; its name may be a secret that was meant to be in it. */
export function readVariable({ env }: Io, name: string, what: string): string {
  const value = env[name]
  if (value === undefined) throw usageError(`${what} is not set.`)
  return utf8Text(value, what)
}

/** Without its last line break. */
function textOf(bytes: Buffer, what: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes).replace(/\r?\n$/, '')
  } catch {
    throw usageError(`${what} is not UTF-8 text.`)
  }
}
