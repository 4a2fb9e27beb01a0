import { CliError, exitCodes } from './exit-codes.ts'

const INTERRUPT = '\u0003'
const END = '\u0004'
const CLEAR_LINE = '\u0015'
const ERASE = new Set(['\u0008', '\u007F'])

/** Asks on stderr, so that stdout stays the answer. What is typed is not shown. */
export function askSecret(question: string): Promise<string> {
  return ask(question, false)
}

/** Whether the answer begins with y. */
export async function askYes(question: string): Promise<boolean> {
  return /^y(es)?$/i.test((await ask(`${question} [y/N] `, true)).trim())
}

export function canAsk(): boolean {
  return process.stdin.isTTY
}

async function ask(question: string, isShown: boolean): Promise<string> {
  const { stdin } = process
  const interruption = new AbortController()
  const interrupt = () => interruption.abort()
  process.once('SIGINT', interrupt)
  stdin.setRawMode(true)
  stdin.setEncoding('utf8')
  process.stderr.write(question)
  try {
    return await lineFrom(stdin, interruption.signal, (typed) => {
      if (isShown) process.stderr.write(typed)
    })
  } finally {
    stdin.setRawMode(false)
    stdin.pause()
    process.off('SIGINT', interrupt)
    process.stderr.write('\n')
  }
}

function lineFrom(
  stdin: NodeJS.ReadStream,
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
    const read = (chunk: string) => {
      for (const character of chunk) {
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
        } else {
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
