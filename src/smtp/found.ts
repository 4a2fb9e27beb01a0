import type { CheckedStep } from '../ports/index.ts'
import type { SmtpReply } from './dialogue.ts'

interface Finding extends Pick<CheckedStep, 'message' | 'advice'> {
  reply?: SmtpReply
}

/** What a step of a check found, and what the next one goes on with. */
export type Found<Next = undefined> =
  | (Finding & { status: 'ok' | 'warning' | 'skipped'; next: Next })
  | (Finding & { status: 'failed' })

/** `undefined`: there is no code in it, so it is a mistake of ours. */
export function errorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || error instanceof TypeError) return undefined
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/** A code that tells more than the sentence before it. */
export function inBrackets(code: string): string {
  return code === 'ECLOSED' ? '' : ` (${code})`
}
