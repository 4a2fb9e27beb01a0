import { styleText } from 'node:util'
import { fitted } from './table.ts'

export type Colour = 'red' | 'green' | 'yellow' | 'grey' | 'bold'

export interface OutputOptions {
  json?: boolean
  color?: boolean
}

export type Output = ReturnType<typeof outputOf>

export function outputOf(run: Run, { json: isJson = false, color = true }: OutputOptions) {
  const { stdout, stderr, env } = run.io
  const { isTTY } = stdout
  const isColoured = isTTY && color && !env['NO_COLOR']
  const columns = widthOf(stdout)
  const textOf = (text: string) => (isTTY ? withTimes(plain(text), run.serverTime) : plain(text))

  return {
    isJson,
    columns,

    /**
     * Prints one answer of the server: as JSON, or as `render` makes it, without control characters. A terminal gets lines that fit, and
     * times as people read them. `indent` 0: its JSON is one line.
     */
    answer<T>(answer: T, render: (answer: T) => string, indent = 2): void {
      const text = () => fitted(render(plainAnswer(answer, textOf)), columns)
      stdout.write(`${isJson ? plainJson(answer, indent) : text()}\n`)
    },

    /** Prints text of several lines, unchanged if there is no terminal. With `--json`, prints the answer. */
    document(answer: unknown, text: string): void {
      if (isJson) stdout.write(`${plainJson(answer, 2)}\n`)
      else stdout.write(isTTY ? `${plainLines(text)}\n` : text.replace(/\n?$/, '\n'))
    },

    /** Says something beside the answer, on stderr. */
    note(text: string): void {
      const told = plainLines(text)
      const shown = stderr.isTTY ? withTimes(told, run.serverTime) : told
      stderr.write(`${fitted(shown, widthOf(stderr))}\n`)
    },

    paint: (colour: Colour, text: string) =>
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

/** What a server says must not steer the terminal that shows it. */
export function plain(text: string): string {
  return text.replace(/[\s\u2028\u2029]/gu, ' ').replace(/\p{C}/gu, '')
}

/** The same for text of several lines. */
export function plainLines(text: string): string {
  return text.replace(/\r\n?/g, '\n').split('\n').map(plain).join('\n')
}

/** A copy, with every text and every name of a property made plain. */
export function plainAnswer<T>(answer: T, textOf = plain): T {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the shape stays
  return plainValue(answer, textOf) as T
}

function plainValue(value: unknown, textOf: (text: string) => string): unknown {
  if (typeof value === 'string') return textOf(value)
  if (Array.isArray(value)) return value.map((each) => plainValue(each, textOf))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [plain(name), plainValue(inner, textOf)]),
  )
}

/** JSON that means the same to a program, and cannot steer a terminal. */
export function plainJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, undefined, indent).replace(/[\p{C}\u2028\u2029]/gu, (character) =>
    character === '\n' ? character : escaped(character),
  )
}

function escaped(character: string): string {
  const units = character.split('').map((unit) => unit.charCodeAt(0).toString(16).padStart(4, '0'))
  return units.map((unit) => `\\u${unit}`).join('')
}

const ISO_TIMES = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g

const UNITS = [
  ['days', 2 * 86_400_000, 86_400_000],
  ['h', 2 * 3_600_000, 3_600_000],
  ['min', 60_000, 60_000],
  ['s', 0, 1_000],
] as const

/** @param now - the server's time: the clock of this machine may be wrong. `undefined`: adds no ages. */
export function withTimes(text: string, now: Date | undefined): string {
  return text.replace(ISO_TIMES, (iso) => {
    const at = `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`
    return now === undefined ? at : `${at} (${ageOf(now.getTime() - Date.parse(iso))})`
  })
}

/** @param ms - below 0, the time is in the future. */
function ageOf(ms: number): string {
  const length = Math.abs(ms)
  // The server's time is exact to the second, and may be some seconds late.
  if (ms < 1_000 && ms > -5_000) return 'now'
  const [unit, , unitMs] = UNITS.find(([, least]) => length >= least) ?? UNITS[3]
  const long = `${Math.floor(length / unitMs)} ${unit}`
  return ms < 0 ? `in ${long}` : `${long} ago`
}

/** Signals that end a program. */
export const endings = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
export type Ending = (typeof endings)[number]

export type Screen = NodeJS.WritableStream & { isTTY?: boolean; columns?: number }

/** What a run uses of its process; `process` is one. */
export interface Io {
  stdin: NodeJS.ReadableStream & { isTTY?: boolean; setRawMode?(isRaw: boolean): unknown }
  stdout: Screen
  stderr: Screen
  env: { [name: string]: string | undefined }
  once(signal: Ending, listener: (signal: Ending) => void): unknown
  off(signal: Ending, listener: (signal: Ending) => void): unknown
}

/** One run of the program. */
export interface Run {
  io: Io
  exitCode: ExitCode
  isStdinRead: boolean
  /** The server's time in its last answer. */
  serverTime?: Date
}

export const USUAL_COLUMNS = 80

/** The width in columns; `undefined`: there is no terminal. */
export function widthOf({ isTTY, columns }: Screen): number | undefined {
  return isTTY ? columns || USUAL_COLUMNS : undefined
}

export const exitCodes = { done: 0, refused: 1, usage: 2, unreachable: 3, notAllowed: 4 } as const
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]
