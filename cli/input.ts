/** What a command reads besides its arguments: stdin, files, variables, and answers at a terminal. */
import { on } from 'node:events'
import { readFile } from 'node:fs/promises'
import { emitKeypressEvents, type Key } from 'node:readline'
import { reachCodeOf } from '../src/errors.ts'
import { refused, usageError } from './failure.ts'
import { endings, type Io, type Run } from './output.ts'

/** All of stdin, without its last line break. At a terminal, it asks for one line, and does not show it. It can be read once. */
export async function readStdin(run: Run, question: string): Promise<string> {
  if (run.isStdinRead) throw usageError('Only one thing can be read from stdin.')
  run.isStdinRead = true
  if (canAsk(run.io)) return ask(run.io, question)
  const chunks: Buffer[] = []
  for await (const chunk of run.io.stdin) chunks.push(Buffer.from(chunk))
  return textOf(Buffer.concat(chunks), 'Stdin')
}

/** @param what - names the file in messages. The path may be a secret that the user meant to put into the file. */
export async function readTextFile(path: string, what: string): Promise<string> {
  const bytes = await readFile(path).catch((error: unknown) => {
    throw usageError(`${what} cannot be read (${reachCodeOf(error)}).`)
  })
  return textOf(bytes, what)
}

/** Without its last line break. */
function textOf(bytes: Buffer, what: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes).replace(/\r?\n$/, '')
  } catch {
    throw usageError(`${what} is not UTF-8 text.`)
  }
}

/** @param what - names the variable in messages. Its name may be a secret that the user meant to put into the variable. */
export function readVariable({ env }: Io, name: string, what: string): string {
  const value = env[name]
  if (value === undefined) throw usageError(`${what} is not set.`)
  return utf8Text(value, what)
}

/** @param what - names the text in the refusal, which does not repeat it. */
export function utf8Text(text: string, what: string): string {
  // Node puts this in place of bytes that are not UTF-8.
  if (text.includes('\uFFFD')) throw usageError(`${what} is not UTF-8 text.`)
  return text
}

export const canAsk = ({ stdin }: Io) => stdin.isTTY === true

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
    const line = await lineFrom(stdin, interruption.signal, show)
    if (line === undefined) throw refused('interrupted', 'Interrupted. Nothing was changed.')
    return line
  } finally {
    stdin.setRawMode?.(false)
    stdin.pause()
    for (const signal of endings) io.off(signal, interrupt)
    stderr.write('\n')
  }
}

/** `undefined`: the user interrupted it. */
async function lineFrom(
  stdin: Io['stdin'],
  signal: AbortSignal,
  show: (typed: string) => void,
): Promise<string | undefined> {
  const line: string[] = []
  const keys = on(stdin, 'keypress', { signal, close: ['end'] })
  stdin.resume()
  try {
    for await (const pressed of keys) {
      const text: string | undefined = pressed[0]
      const { name, ctrl = false }: Key = pressed[1]
      const isEnd = ctrl && name === 'd'
      if ((ctrl && name === 'c') || (isEnd && line.length === 0)) return undefined
      if (name === 'return' || name === 'enter' || isEnd) return line.join('')
      if (name === 'backspace') {
        if (line.pop() !== undefined) show('\b \b')
      } else if (ctrl && name === 'u') {
        show('\b \b'.repeat(line.splice(0).length))
      } else if (text !== undefined && !/\p{Cc}/u.test(text)) {
        line.push(text)
        show(text)
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
  return undefined
}
