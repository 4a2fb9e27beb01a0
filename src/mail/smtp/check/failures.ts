import type { NodemailerError } from 'nodemailer'
import type { CheckedStep, MailStep } from '../../sending.ts'
import type { SmtpSettings } from '../settings.ts'
import { FAILURES, LATER } from './words.ts'
import { TokenError } from '../token-request.ts'

/** What is found out about a step. */
export type Finding = Omit<CheckedStep, 'step'>

export function finding(
  status: Finding['status'],
  message: string,
  more: Pick<Finding, 'reply' | 'advice'> = {},
): Finding {
  return { status, message, ...more }
}

/** What was learnt on the way to the server so far. */
export interface Seen {
  settings: SmtpSettings
  /** Commands, without secrets, and replies. */
  said: string[]
  heard: string[]
  isConnected: boolean
  /** The access token, in the place of a password. */
  secret?: { password: string }
  /** The check ran out of time. */
  isLate: boolean
}

/** The failure of a step. What is a mistake of ours is thrown on. */
export function explain(step: MailStep, error: unknown, seen: Seen): Finding {
  if (error instanceof TokenError) {
    const isAnswered = /^\d/.test(error.why)
    return told(isAnswered ? 'refused token' : 'token', error.why, seen)
  }
  if (!(error instanceof Error) || error instanceof TypeError) throw error
  const failure: NodemailerError = error
  if (failure.code === undefined) throw error
  const code = codeOf(failure, seen)
  const way = wayOf(step, failure, seen)
  const isByToken = way === 'auth' && seen.settings.oauth && !/^(?:530|538|ENOAUTH)$/.test(code)
  const { response: reply } = failure
  const { advice = '', ...found } = told(isByToken ? 'auth token' : way, code, seen)
  return {
    ...found,
    advice: code.startsWith('4') ? LATER : advice,
    ...(reply !== undefined && { reply }),
  }
}

function told(way: string, code: string, seen: Seen): Finding {
  const [, error = code] = code.split(' ')
  const [message = '', advice = ''] = FAILURES[`${way} ${error}`] ?? FAILURES[way] ?? []
  const { host, port, from, tls, oauth } = seen.settings
  const endpoint = oauth && new URL(oauth.endpoint).host
  const values: Record<string, unknown> = { host, port, from, tls, code, endpoint }
  values['login'] = loginOf(seen)
  const text = message.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(values[name]))
  return finding('failed', text, { advice })
}

function codeOf(failure: NodemailerError, { isLate }: Seen): string {
  const { responseCode, timeoutType, originalCode, code } = failure
  if (responseCode !== undefined) return String(responseCode)
  if (isLate || timeoutType !== undefined) return 'out of time'
  return code === 'EPROTOCOL' ? 'not SMTP' : (originalCode ?? String(code))
}

/** How it failed, as in the table. */
function wayOf(step: MailStep, { code, responseCode }: NodemailerError, seen: Seen): string {
  const { said, isConnected, isLate } = seen
  if (step === 'dns' || code === 'ENOAUTH' || (step === 'connect' && !isConnected)) return step
  if (responseCode === undefined) {
    if (step === 'connect') return 'greeting'
    const isHandshake = step === 'tls' && (code === 'ETLS' || code === 'ESOCKET')
    return isHandshake && !isLate ? 'handshake' : 'unanswered'
  }
  if (!isGreeted(seen)) return 'refused greeting'
  if (step !== 'tls') return step
  if (said.at(-1) !== 'STARTTLS') return 'hello'
  return offersTls(seen) ? 'starttls' : 'stripped'
}

export const isGreeted = ({ heard }: Seen) => (heard[0] ?? '').startsWith('220')
export const offersTls = ({ heard }: Seen) => heard.some((each) => /[ -]STARTTLS\b/i.test(each))

/** How the library logged in. */
export function loginOf({ said }: Seen): string {
  const command = said.findLast((each) => each.startsWith('AUTH ')) ?? 'AUTH'
  return command.split(' ', 2).join(' ')
}
