import type { Context } from 'koa'
import { hasCode } from '../errors.ts'
import { framesOf } from '../log.ts'
import type { Log } from '../contract/index.ts'

/** The page says: "wait a minute". */
export const RETRY_AFTER_SECONDS = '60'

const PASSING = ['ERR_STORE_UNAVAILABLE', 'ERR_OVERLOADED', 'ERR_VALIDATOR_FAILED'] as const

// Returns what to show. `unavailable`: a later try may succeed, and `Retry-After` is set. Of such an error it logs only the code, because
// the message may contain the address of the database.
export function reportFailure(
  ctx: Context,
  { message, path, log }: { message: string; path: string; log: Log },
  error: unknown,
): 'error' | 'unavailable' {
  const code = PASSING.find((each) => hasCode(error, each))
  if (!code) {
    log('error', message, { path, error: String(error), at: framesOf(error) })
    return 'error'
  }
  const level = code === 'ERR_OVERLOADED' ? 'warn' : 'error'
  log(level, code === 'ERR_VALIDATOR_FAILED' ? String(error) : message, { path, code })
  ctx.set('Retry-After', RETRY_AFTER_SECONDS)
  return 'unavailable'
}

interface Problem {
  status: number
  code: string
  title: string
}

/** Answers a program: RFC 9457. `code` is stable; the title is a sentence. */
export function showProblem(ctx: Context, { status, code, title, ...more }: Problem): void {
  ctx.status = status
  ctx.set('Cache-Control', 'no-store')
  ctx.set('X-Content-Type-Options', 'nosniff')
  ctx.body = JSON.stringify({ title, status, code, ...more })
  ctx.type = 'application/problem+json'
}
