import { CliError, exitCodes } from './exit-codes.ts'
import { endings, type Io } from './io.ts'
import { typedKeys } from './typed-keys.ts'

const INTERRUPT = '\u0003'
const END = '\u0004'
const CLEAR_LINE = '\u0015'
const ERASE = new Set(['\u0008', '\u007F'])

/**
 * Asks on stderr, so that stdout stays the answer. What is typed is not shown. It takes one line, to Enter or Ctrl-D; Backspace and
 * Ctrl-U take back, all other control characters and keys that are no characters are ignored.
 *
 * @throws CliError `interrupted` at Ctrl-C, SIGINT, SIGTERM, SIGHUP, the end of the input, or Ctrl-D before anything is typed; the
 * terminal is as it was.
 */
export function askSecret(io: Io, question: string): Promise<string> {
  return ask(io, question, false)
}

/** Whether the answer begins with y. */
export async function askYes(io: Io, question: string): Promise<boolean> {
  return /^y(es)?$/i.test((await ask(io, `${question} [y/N] `, true)).trim())
}

export function canAsk({ stdin }: Io): boolean {
  return stdin.isTTY === true
}

async function ask(io: Io, question: string, isShown: boolean): Promise<string> {
  const { stdin, stderr } = io
  const interruption = new AbortController()
  const interrupt = () => interruption.abort()
  for (const signal of endings) io.once(signal, interrupt)
  stdin.setRawMode?.(true)
  stdin.setEncoding('utf8')
  stderr.write(question)
  try {
    return await lineFrom(stdin, interruption.signal, (typed) => {
      if (isShown) stderr.write(typed)
    })
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
    const interrupted = () => {
      end()
      reject(new CliError(exitCodes.refused, 'interrupted', 'Interrupted; nothing was changed.'))
    }
    const end = () => {
      stdin.off('data', read)
      stdin.off('end', interrupted)
      interruption.removeEventListener('abort', interrupted)
    }
    const keys = typedKeys()
    const read = (chunk: string) => {
      for (const character of keys(chunk)) {
        if (character === INTERRUPT || (character === END && line.length === 0))
          return interrupted()
        if (character === '\r' || character === '\n' || character === END) {
          end()
          return resolve(line.join(''))
        }
        if (ERASE.has(character)) {
          if (line.pop() !== undefined) show('\b \b')
        } else if (character === CLEAR_LINE) {
          show('\b \b'.repeat(line.length))
          line = []
        } else if (!/\p{Cc}/u.test(character)) {
          line.push(character)
          show(character)
        }
      }
    }
    stdin.on('data', read)
    stdin.on('end', interrupted)
    interruption.addEventListener('abort', interrupted)
    stdin.resume()
  })
}
