import type { Check } from '../src/admin/client.ts'
import type { Colour, Output } from './output.ts'

const words: Record<Check['status'], [string, Colour]> = {
  ok: ['ok', 'green'],
  warning: ['warning', 'yellow'],
  failed: ['FAILED', 'red'],
  skipped: ['skipped', 'grey'],
}

const STATUS_WIDTH = 8

/** One line, with what the other side said and what to do beneath it. */
export function checkText({ step, status, message, reply, advice }: Check, output: Output): string {
  const [word, colour] = words[status]
  return [
    `${output.paint(colour, word.padEnd(STATUS_WIDTH))} ${step}: ${message}`,
    ...(reply === undefined ? [] : [`         It said: ${reply}`]),
    ...(advice === undefined ? [] : [`         ${output.paint('bold', advice)}`]),
  ].join('\n')
}
