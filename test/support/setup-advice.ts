import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { Context } from 'mocha'

/** All processes of a test run write there what they are missing. */
const FILE = 'ACCOUNT_FLOWS_TESTS_MISSING'

/** Before there are workers. */
export function collectAdvice(): void {
  process.env[FILE] = path.join(mkdtempSync(path.join(tmpdir(), 'tests-miss-')), 'advice')
}

/** Leaves a suite out, pending as a whole, for the one reason that is told at the end; under `CI=true` it fails. */
export function leaveOut(suite: Context, advice: string): never {
  if (process.env['CI'] === 'true') throw new Error(advice)
  return leaveOutAnywhere(suite, advice)
}

/** The same, also under `CI=true`: what is missing cannot be installed there. */
export function leaveOutAnywhere(suite: Context, advice: string): never {
  const file = process.env[FILE]
  if (file) appendFileSync(file, `${advice}\n`)
  return suite.skip()
}

/** One line for everything that was left out. */
export function tellAdvice(): void {
  const file = process.env[FILE]
  if (!file) return
  const advice = new Set(readLines(file))
  rmSync(path.dirname(file), { recursive: true, force: true })
  if (advice.size > 0) console.warn(`Pending for what is missing. ${[...advice].join(' ')}`)
}

function readLines(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\n').filter(Boolean)
  } catch {
    return []
  }
}
