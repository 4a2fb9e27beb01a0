import { errorCode, inBrackets, type Found } from './found.ts'
import type { SmtpDialogue, SmtpReply } from './dialogue.ts'
import { tlsPolicy, type SmtpSettings } from './settings.ts'

const REASONS: Record<string, string> = {
  ECONNREFUSED: 'nothing listens there',
  ETIMEDOUT: 'there was no answer',
  EHOSTUNREACH: 'there is no way to this address',
  ENETUNREACH: 'this machine has no way to that network',
  ECONNRESET: 'the connection was cut',
  EACCES: 'this machine forbids it',
  EPERM: 'this machine forbids it',
}

const ADVICE: Record<string, string> = {
  ECONNREFUSED: 'Check smtp_port (587, or 465 for implicit TLS) and whether the server runs.',
  EACCES: 'A rule of the local firewall or of the container forbids the connection.',
  EPERM: 'A rule of the local firewall or of the container forbids the connection.',
}

/** Connects, and hears the greeting where it comes in the clear. */
export async function checkConnect(dialogue: SmtpDialogue, settings: SmtpSettings): Promise<Found> {
  const { host, port } = settings
  let at = `${host} port ${port}`
  try {
    at = `${await dialogue.connected()} port ${port}`
    if (tlsPolicy(settings).secure) {
      return { status: 'ok', message: `Connected to ${at}.`, next: undefined }
    }
    const greeting = await dialogue.reply()
    return judgeGreeting(greeting, `Connected to ${at}`)
  } catch (error) {
    const code = errorCode(error)
    if (code === undefined) throw error
    if (!dialogue.wasConnected()) return notConnected(error, code, settings)
    return { status: 'failed', ...brokenGreeting(code, at, port) }
  }
}

/** What to do where no connection or no greeting came in time. */
export function adviceOnSilence(dialogue: SmtpDialogue, { port }: SmtpSettings): string {
  return dialogue.wasConnected() ? expectsTls(port) : blocked(port)
}

export function judgeGreeting(greeting: SmtpReply, before: string): Found {
  if (greeting.code === 220) {
    return {
      status: 'ok',
      message: `${before}, and the server greets.`,
      reply: greeting,
      next: undefined,
    }
  }
  const isForNow = greeting.code >= 400 && greeting.code < 500
  return {
    status: 'failed',
    message: `${before}, but the server ${isForNow ? 'has no time for anybody now' : 'does not talk to this machine'} (${greeting.code}).`,
    reply: greeting,
    advice: isForNow
      ? 'Try again in a few minutes; if it stays, there are too many connections from this address.'
      : 'Ask its operator whether the address of this machine is blocked, or use the server and port of your provider for submission.',
  }
}

function notConnected(error: unknown, code: string, { host, port }: SmtpSettings): Found {
  const tried =
    error instanceof AggregateError && error.errors.length > 1
      ? ` Tried: ${error.errors.slice(0, 4).map(attempt).join(', ')}.`
      : ''
  const reason = REASONS[code] ?? 'the connection failed'
  return {
    status: 'failed',
    message: `No connection to ${host} port ${port}: ${reason} (${code}).${tried}`,
    advice: ADVICE[code] ?? blocked(port),
  }
}

function attempt(error: unknown): string {
  const address = error instanceof Error && 'address' in error ? error.address : undefined
  return `${typeof address === 'string' ? address : 'an address'} (${errorCode(error)})`
}

function brokenGreeting(code: string, at: string, port: number) {
  if (code === 'ENOTSMTP' || code === 'ETOOLONG') {
    return {
      message: `Connected to ${at}, but what answers there is no SMTP server.`,
      advice: `Check smtp_host and smtp_port. ${expectsTls(port)}`,
    }
  }
  return {
    message: `Connected to ${at}, but the connection was closed before a greeting${inBrackets(code)}.`,
    advice: `The server may block the address of this machine: ask its operator. ${expectsTls(port)}`,
  }
}

function expectsTls(port: number): string {
  if (port === 25) return blocked(port)
  const advice = 'A server that expects TLS from the first byte does not greet'
  return port === 465
    ? `${advice}, and port 465 is meant for that: set smtp_tls to implicit.`
    : `${advice}: then set smtp_tls to implicit.`
}

function blocked(port: number): string {
  return port === 25
    ? 'Many hosting providers block port 25: use 587, or 465 with smtp_tls implicit. Otherwise look for a firewall.'
    : 'Look for a firewall between this machine and the server, and check smtp_host and smtp_port.'
}
