import { emitKeypressEvents, type Key } from 'node:readline'
import { refused } from './exit-codes.ts'
import { endings, type Io } from './io.ts'

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
