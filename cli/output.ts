import type { Command } from 'commander'
import { runOf, widthOf, endings, type Ending, type Io } from './io.ts'
import { plain, plainAnswer, plainJson, plainLines } from './plain-text.ts'
import { fitted } from './table.ts'
import { withTimes } from './time-text.ts'

const colours = { red: 31, green: 32, yellow: 33, grey: 90, bold: 1 } as const

export type Colour = keyof typeof colours

export interface Output {
  isJson: boolean
  /** Width of the terminal; `undefined`: it is none. */
  columns: number | undefined
  /**
   * Prints one answer of the server: as JSON, or what is made of its texts without control characters. A terminal gets lines that fit,
   * and times as people read them.
   */
  answer<T>(answer: T, render: (answer: T) => string): void
  /** The same for one of many: its JSON is one line. */
  entry<T>(answer: T, render: (answer: T) => string): void
  /** Prints text of several lines, raw where no terminal shows it. With `--json`: the answer. */
  document(answer: unknown, text: string): void
  /** Says something beside the answer, on stderr. */
  note(text: string): void
  paint(colour: Colour, text: string): string
}

export function outputOf(command: Command): Output {
  const options: { json?: boolean; color?: boolean } = command.optsWithGlobals()
  const run = runOf(command)
  const { stdout, stderr, env } = run.io
  const { isTTY } = stdout
  const isJson = options.json === true
  const isColoured = isTTY && options.color !== false && !env['NO_COLOR']
  const columns = widthOf(stdout)
  const print = (text: string) => void stdout.write(`${text}\n`)
  const textOf = (text: string) => (isTTY ? withTimes(plain(text), run.serverTime) : plain(text))
  const tell = <T>(answer: T, render: (answer: T) => string) =>
    print(fitted(render(plainAnswer(answer, textOf)), columns))

  return {
    isJson,
    columns,
    answer: (answer, render) => (isJson ? print(plainJson(answer, 2)) : tell(answer, render)),
    entry: (answer, render) => (isJson ? print(plainJson(answer)) : tell(answer, render)),
    document(answer, text) {
      if (isJson) print(plainJson(answer, 2))
      else stdout.write(isTTY ? `${plainLines(text)}\n` : text.replace(/\n?$/, '\n'))
    },
    note(text) {
      const told = plainLines(text)
      const shown = stderr.isTTY ? withTimes(told, run.serverTime) : told
      stderr.write(`${fitted(shown, widthOf(stderr))}\n`)
    },
    paint: (colour, text) => (isColoured ? `\u001B[${colours[colour]}m${text}\u001B[0m` : text),
  }
}

const CLEARED_LINE = '\r\u001B[K'

/** Runs work with a progress line on stderr, which is removed at its end. Without a terminal, nothing is shown. */
export async function withProgress<T>(
  io: Io,
  work: (tell: (text: string) => void) => Promise<T>,
): Promise<T> {
  const { stderr } = io
  if (!stderr.isTTY) return work(() => undefined)

  function clear() {
    stderr.write(CLEARED_LINE)
    for (const signal of endings) io.off(signal, leave)
  }
  function leave(signal: Ending) {
    clear()
    io.kill(io.pid, signal)
  }

  for (const signal of endings) io.once(signal, leave)
  try {
    return await work((text) => void stderr.write(CLEARED_LINE + text))
  } finally {
    clear()
  }
}
