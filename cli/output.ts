import { styleText } from 'node:util'
import { widthOf, type Io, type Run } from './io.ts'
import { plain, plainAnswer, plainJson, plainLines } from './plain-text.ts'
import { fitted } from './table.ts'
import { withTimes } from './time-text.ts'

export type Colour = 'red' | 'green' | 'yellow' | 'grey' | 'bold'

export interface OutputOptions {
  json?: boolean
  color?: boolean
}

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

export function outputOf(run: Run, { json: isJson = false, color = true }: OutputOptions): Output {
  const { stdout, stderr, env } = run.io
  const { isTTY } = stdout
  const isColoured = isTTY && color && !env['NO_COLOR']
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
    paint: (colour, text) =>
      isColoured ? styleText(colour, text, { validateStream: false }) : text,
  }
}

const CLEARED_LINE = '\r\u001B[K'

/** Runs work with a progress line on stderr, which is removed at its end. Without a terminal, nothing is shown. */
export async function withProgress<T>(
  { stderr }: Io,
  work: (tell: (text: string) => void) => Promise<T>,
): Promise<T> {
  const show = (text: string) => void (stderr.isTTY && stderr.write(CLEARED_LINE + text))
  return work(show).finally(() => show(''))
}
