import type { Check } from '../src/admin/client.ts'
import type { Colour, Output } from './output.ts'

const statusWords: Record<Check['status'], [string, Colour]> = {
  ok: ['ok', 'green'],
  advice: ['advice', 'yellow'],
  warning: ['warning', 'yellow'],
  failed: ['FAILED', 'red'],
  skipped: ['skipped', 'grey'],
}

const STATUS_WIDTH = 8
const BELOW = `\n${' '.repeat(STATUS_WIDTH + 1)}`

/** One line, with what the other side said and what to do beneath it. */
export function checkText({ step, status, message, reply, advice }: Check, output: Output): string {
  // Each sentence is about another setting.
  const sentences = status === 'advice' ? message.replaceAll('. ', `.${BELOW}`) : message
  return [
    `${statusText(status, output)} ${step}: ${sentences}`,
    ...(reply === undefined ? [] : [`Answer: ${reply}`]),
    ...(advice === undefined ? [] : [output.paint('bold', advice)]),
  ].join(BELOW)
}

function statusText(status: Check['status'], output: Output): string {
  const [word, colour] = statusWords[status]
  return output.paint(colour, word.padEnd(STATUS_WIDTH))
}

/** What was skipped, in one line, and whether the service is ready. */
export function reportEnd(checks: Check[], output: Output): string {
  const skipped = stepsOf(checks, 'skipped')
  return [
    ...(skipped.length === 0 ? [] : [`${statusText('skipped', output)} ${skipped.join(', ')}`]),
    '',
    output.paint('bold', verdict(checks)),
  ].join('\n')
}

function verdict(checks: Check[]): string {
  const failed = checks.find(({ status }) => status === 'failed')
  const warnings = stepsOf(checks, 'warning').length
  if (failed) return `Not ready: ${reasonOf(failed)}`
  if (warnings === 0) return 'Ready.'
  return `Ready, with ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}.`
}

/** The first sentence, to stand behind a colon. */
function reasonOf({ message }: Check): string {
  if (message.startsWith('Mail is not configured')) return 'no mail server is set.'
  const [sentence = ''] = message.split(/\.(?: |$)/)
  return `${sentence.replace(/^[A-Z](?=[a-z ])/, (letter) => letter.toLowerCase())}.`
}

function stepsOf(checks: Check[], wanted: Check['status']): string[] {
  return checks.flatMap(({ step, status }) => (status === wanted ? step : []))
}
