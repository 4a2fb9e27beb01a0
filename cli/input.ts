import { readFile } from 'node:fs/promises'
import { reachCodeOf } from '../src/errors.ts'
import { refused, usageError } from './failure.ts'
import { endings, type Io, type Run } from './io.ts'
import { utf8Text } from './output.ts'
import { emitKeypressEvents, type Key } from 'node:readline'

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

export function canAsk({ stdin }: Io): boolean {
  return stdin.isTTY === true
}

/** Asks on stderr, so that stdout stays the answer. An interruption leaves the terminal as it was. */
export async function ask(io: Io, question: string, isShown = false): Promise<string> {
  const { stdin, stderr } = io
  const interruption = new AbortController()
  const interrupt = () => interruption.abort()
  for (const signal of endings) io.once(signal, interrupt)
  stdin.setRawMode?.(true)
  emitKeypressEvents(stdin)
  stderr.write(question)
  try {
    const show = (typed: string) => void (isShown && stderr.write(typed))
    return await lineFrom(stdin, interruption.signal, show)
  } finally {
    stdin.setRawMode?.(false)
    stdin.pause()
    for (const signal of endings) io.off(signal, interrupt)
    stderr.write('\n')
  }
}

function lineFrom(
  stdin: Io['stdin'],
  interruption: AbortSignal,
  show: (typed: string) => void,
): Promise<string> {
  return new Promise((resolve, reject) => {
    let line: string[] = []
    const end = () => {
      stdin.off('keypress', read)
      stdin.off('end', interrupted)
      interruption.removeEventListener('abort', interrupted)
    }
    const interrupted = () => {
      end()
      reject(refused('interrupted', 'Interrupted. Nothing was changed.'))
    }
    const read = (text: string | undefined, { name, ctrl = false }: Key) => {
      const isEnd = ctrl && name === 'd'
      if ((ctrl && name === 'c') || (isEnd && line.length === 0)) return interrupted()
      if (name === 'return' || name === 'enter' || isEnd) {
        end()
        return resolve(line.join(''))
      }
      if (name === 'backspace') {
        if (line.pop() !== undefined) show('\b \b')
      } else if (ctrl && name === 'u') {
        show('\b \b'.repeat(line.length))
        line = []
      } else if (text !== undefined && !/\p{Cc}/u.test(text)) {
        line.push(text)
        show(text)
      }
    }
    stdin.on('keypress', read)
    stdin.on('end', interrupted)
    interruption.addEventListener('abort', interrupted)
    stdin.resume()
  })
}
