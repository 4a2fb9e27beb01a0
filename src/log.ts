import { systemClock } from './clock.ts'

/** Where warnings and failures go: never a token, a password, a key or a typed identifier. */
export type Log = (
  level: 'info' | 'warn' | 'error',
  message: string,
  details?: Record<string, string | number | string[]>,
) => void

const MAX_TEXT = 1_000
const MAX_READ = 4_000
const MAX_LINE = 20_000
const MAX_FRAMES = 8

/** Writes JSON lines to standard error, without quotes from errors. */
export const logJsonLines: Log = withoutValues((level, message, details) => {
  const time = systemClock.now().toISOString()
  process.stderr.write(`${jsonLine({ ...details, time, level, message })}\n`)
})

/**
 * Removes from log entries what errors quote from their input. From the message and from `error`, it removes all text after the first quote
 * or brace. From every text, it removes addresses with a query or a user, and words long enough to be a token or a key. Each becomes one
 * `…`. Texts are cut after 1,000 characters.
 */
export function withoutValues(log: Log): Log {
  return (level, message, details = {}) => {
    const cleaned = Object.entries(details).map(cleanedDetail)
    log(level, cleanedText(withoutQuotes(message)), Object.fromEntries(cleaned))
  }
}

/** At most 8 calls of the stack, without the message. */
export function framesOf(error: unknown): string[] {
  if (!(error instanceof Error)) return []
  const { message, stack = '' } = error
  const calls = stack.slice(Math.max(0, stack.indexOf(message)) + message.length).split('\n')
  const frames = calls.filter((line) => /^ {4}at .*:\d+:\d+\)?$/.test(line))
  return frames.slice(0, MAX_FRAMES).map((line) => line.trim())
}

/** One line of JSON that is safe for terminals and line splitters. What JSON cannot hold is left out, and the line says so. */
export function jsonLine(record: Record<string, unknown>): string {
  const { time, level, message } = record
  const without = (details: string) =>
    escaped(JSON.stringify({ time, level, message: String(message), details }))
  try {
    const line = escaped(JSON.stringify(record))
    return line.length <= MAX_LINE ? line : without('too long to be logged')
  } catch {
    return without('not readable')
  }
}

function escaped(json: string): string {
  return json.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) =>
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  )
}

function cleanedDetail([name, value]: [name: string, value: string | number | string[]]) {
  if (Array.isArray(value)) return [name, value.map(cleanedText)]
  if (typeof value !== 'string') return [name, value]
  return [name, cleanedText(name === 'error' ? withoutQuotes(value) : value)]
}

/** From the first quote or brace to the end, because a quoted text may hold quotes. An apostrophe within a word is no quote. */
const QUOTED = /(?:(?<!\w)'|["`{])[^]*/

function withoutQuotes(text: string): string {
  return text.replace(QUOTED, '…')
}

const ADDRESS_OR_KEY = /(?<!\S)\S*[?@]\S*|[\w-]{32,}/g

// Cuts first, so that a long text costs little. Cuts between two words, so that no part of a value is left.
function cleanedText(text: string): string {
  const read =
    text.length > MAX_READ
      ? `${text.slice(0, text.slice(0, MAX_READ).lastIndexOf(' ') + 1)}…`
      : text
  const cleaned = read.replaceAll(ADDRESS_OR_KEY, '…')
  return cleaned.length > MAX_TEXT ? `${cleaned.slice(0, MAX_TEXT)}…` : cleaned
}
