import type { Log } from './log.ts'

/** The codes are the contract; messages are sentences and may change. */
export type ErrorCode =
  | 'ERR_VALIDATOR_FAILED'
  | 'ERR_MAIL_ADDRESS'
  | 'ERR_MAIL_REFUSED'
  | 'ERR_MAIL_FAILED'
  | 'ERR_NOT_ATTACHED'
  | 'ERR_OVERLOADED'
  | 'ERR_SETTINGS_CONFLICT'
  | 'ERR_STORE_INDEX'
  | 'ERR_STORE_DAMAGED'
  | 'ERR_STORE_UNAVAILABLE'

/** Where the mail server failed, for admins. Never a link, a token, a password or an address. */
export interface MailFault {
  /** The SMTP command, such as `RCPT TO`, or what was being done. */
  step: string
  /** The codes of the answer, such as `451 4.7.1`, or the code of the system, such as `ECONNREFUSED`. */
  code: string
  /** The server's own words. `undefined`: it sent none, or it had received a secret by then. */
  reply?: string
}

export function atStep({ step }: Pick<MailFault, 'step'>): string {
  if (/^[A-Z]/.test(step)) return `at ${step}`
  return `while ${step === 'token' ? 'asking for an access token' : step}`
}

/** Something is broken, and no user or client can mend it. Expected outcomes are returned, never thrown. */
export class AccountFlowsError extends Error {
  readonly code: ErrorCode
  /** Set for `ERR_MAIL_REFUSED` and `ERR_MAIL_FAILED`, if a mail server was asked. */
  readonly fault: MailFault | undefined

  constructor(
    code: ErrorCode,
    message: string,
    { fault, ...options }: { cause?: unknown; fault?: MailFault } = {},
  ) {
    super(message, options)
    this.name = 'AccountFlowsError'
    this.code = code
    this.fault = fault
  }
}

/** Only the code counts, so that a host's own store can throw it too. */
export function isStoreUnavailable(error: unknown): boolean {
  return hasCode(error, 'ERR_STORE_UNAVAILABLE')
}

export function hasCode(error: unknown, code: ErrorCode): boolean {
  return error instanceof Error && Reflect.get(error, 'code') === code
}

/** The name without the message, which may quote what the user typed. Even to read the error of a host may throw. */
export function errorName(error: unknown): string {
  try {
    return error instanceof Error ? error.name : typeof error
  } catch {
    return typeof error
  }
}

export function isProduction(): boolean {
  return process.env['NODE_ENV'] === 'production'
}

export type RefuseWeak = (problem: string) => void

/** Warns of a value that is only for development; in production it throws a `TypeError`. */
export function refuseWeak(log: Log): RefuseWeak {
  return (problem) => {
    if (isProduction()) throw new TypeError(problem)
    log('warn', `${problem}; in production this is refused`)
  }
}

export function must(isSo: unknown, problem: string): asserts isSo {
  if (!isSo) throw new TypeError(problem)
}

/** Whether each segment begins with a slash, and is plain: `/admin/api`. Empty is a path too. */
export const isPath = (text: string) => /^(\/[A-Za-z0-9._~-]+)*$/.test(text)

/** The body as text. `undefined`: it has more than `maxBytes`, and the rest was not read. */
export async function textOf(
  { body }: { body: AsyncIterable<Uint8Array> | null },
  maxBytes: number,
): Promise<string | undefined> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength
    if (bytes > maxBytes) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

/** `undefined`: the text is not JSON. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Why no answer came: only a code, because messages may quote what was sent. */
export function reachCodeOf(error: unknown, otherwise = 'not reached'): string {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const code: unknown = Reflect.get(cause, 'code')
    if (typeof code === 'string' && /^\w{1,40}$/.test(code)) return code
  }
  return otherwise
}
