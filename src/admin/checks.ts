import * as z from 'zod'
import { reachCodeOf } from '../errors.ts'
import { defined } from '../store/kind.ts'
import { object, optional, text } from './schema.ts'

export type Check = z.infer<typeof Check>
export const Check = object('One check. After a failed check, the rest of its group is skipped.', {
  step: text,
  status: z
    .enum(['ok', 'advice', 'warning', 'failed', 'skipped'])
    .describe('advice: nothing is wrong, but another value is recommended.'),
  message: text.describe('What is so.'),
  reply: optional(text, 'What the other side said, without anything secret.'),
  advice: optional(text, 'What to do.'),
})

export type CheckReport = z.infer<typeof CheckReport>
export const CheckReport = object('What the checks found.', {
  ok: z.boolean().describe('Whether none failed.'),
  checks: z.array(Check),
})

/** What a check found; who asks knows which check it is. */
export type Finding = Omit<Check, 'step'>

export function reportOf(checks: Check[]) {
  return { ok: checks.every(({ status }) => status !== 'failed'), checks }
}

export function finding(status: Check['status'], message: string, advice?: string): Finding {
  return { status, message, ...defined({ advice }) }
}

/** A code alone: messages may quote addresses and credentials. */
export function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown reason'
  if (error.name === 'TimeoutError') return 'no answer in time'
  return reachCodeOf(error, error.name)
}
