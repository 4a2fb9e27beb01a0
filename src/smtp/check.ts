import type { LookupAddress } from 'node:dns'
import type { TcpSocketConnectOpts } from 'node:net'
import type { CheckedStep, MailCheckOptions, MailStep } from '../ports/index.ts'
import { later, type Clock } from '../clock.ts'
import { checkAuth } from './check-auth.ts'
import { adviceOnSilence, checkConnect } from './check-connect.ts'
import { checkDns } from './check-dns.ts'
import { checkData, checkFrom, checkRcpt } from './check-envelope.ts'
import { checkTls } from './check-tls.ts'
import { errorCode, inBrackets, type Found } from './found.ts'
import { replyFilter, type ReplyFilter } from './shown-reply.ts'
import { openSmtpDialogue, type SmtpDialogue } from './dialogue.ts'
import type { SmtpSettings } from './settings.ts'

export const MAIL_STEPS: readonly MailStep[] = [
  'dns',
  'connect',
  'tls',
  'auth',
  'from',
  'rcpt',
  'data',
]
const STEP_SECONDS = 10
const SLOW_SERVER = 'The server answers slowly or not at all: look into its log, and try again.'

export interface SmtpCheckOptions extends MailCheckOptions {
  /** Aborted, the step under way fails. */
  signal: AbortSignal
}

/**
 * Tries to hand a mail over, past the outbox and the pool, over a connection that is closed at the end. Answers every step once,
 * in their order.
 */
export async function checkSmtp(
  settings: SmtpSettings,
  { to, mail, signal }: SmtpCheckOptions,
  clock: Clock,
): Promise<CheckedStep[]> {
  const filter = replyFilter(settings)
  const steps: CheckedStep[] = []
  let dialogue: SmtpDialogue | undefined
  let farewell = ['QUIT']

  /** `undefined`: the step failed, and nothing follows it. */
  async function pass<Next>(step: MailStep, check: () => Promise<Found<Next>>) {
    const found = await withinLimits(check, signal, clock).catch(brokenDialogue)
    const checked =
      found === 'limit' || found === 'signal'
        ? late(found, signal, adviceOnLimit(step, dialogue, settings))
        : shown(found, filter)
    steps.push({ step, ...checked })
    return typeof found === 'string' || found.status === 'failed' ? undefined : found
  }

  async function passAll(): Promise<void> {
    const dns = await pass('dns', () => checkDns(settings.host))
    if (!dns) return
    const talk = openSmtpDialogue(connectOptions(settings, dns.next), clock)
    dialogue = talk
    if (!(await pass('connect', () => checkConnect(talk, settings)))) return
    const tls = await pass('tls', () => checkTls(talk, settings, filter.text, clock))
    if (!tls) return
    if (!(await pass('auth', () => checkAuth(talk, settings, tls.next, filter)))) return
    if (!(await pass('from', () => checkFrom(talk, settings)))) return
    farewell = ['RSET', 'QUIT']
    if (!(await pass('rcpt', () => checkRcpt(talk, to)))) return
    const sent = mail && to !== undefined ? { ...mail, to } : undefined
    await pass('data', () => checkData(talk, settings, sent))
  }

  try {
    await passAll()
  } finally {
    await dialogue?.close(signal.aborted ? [] : farewell)
  }
  return [...steps, ...MAIL_STEPS.slice(steps.length).map(skippedStep)]
}

/** A step of which nothing is known, because an earlier one failed. */
export function skippedStep(step: MailStep): CheckedStep {
  return { step, status: 'skipped', message: 'Not tried: an earlier step failed.' }
}

/** What was looked up is what is connected to. */
function connectOptions(
  { host, port }: SmtpSettings,
  addresses: LookupAddress[],
): TcpSocketConnectOpts {
  return { host, port, lookup: (_host, _options, found) => found(null, addresses) }
}

/** `limit`: the step took too long; `signal`: the whole check has to end. */
async function withinLimits<T>(
  work: () => Promise<T>,
  signal: AbortSignal,
  clock: Clock,
): Promise<T | 'limit' | 'signal'> {
  if (signal.aborted) return 'signal'
  let cancel = () => {}
  let stop = () => {}
  const limit = new Promise<'limit' | 'signal'>((resolve) => {
    cancel = later(clock, STEP_SECONDS * 1000, () => resolve('limit'))
    stop = () => resolve('signal')
    signal.addEventListener('abort', stop)
  })
  try {
    return await Promise.race([work(), limit])
  } finally {
    cancel()
    signal.removeEventListener('abort', stop)
  }
}

type Checked = Omit<CheckedStep, 'step'>

function shown(found: Found<unknown>, filter: ReplyFilter): Checked {
  const { status, message, reply, advice } = found
  return {
    status,
    message,
    ...(reply && { reply: filter.reply(reply) }),
    ...(advice !== undefined && { advice }),
  }
}

function adviceOnLimit(
  step: MailStep,
  dialogue: SmtpDialogue | undefined,
  settings: SmtpSettings,
): string {
  if (!dialogue) {
    return 'See whether this machine reaches its name server (/etc/resolv.conf), and try again.'
  }
  return step === 'connect' ? adviceOnSilence(dialogue, settings) : SLOW_SERVER
}

function late(cause: 'limit' | 'signal', { reason }: AbortSignal, advice: string): Checked {
  if (cause === 'limit') {
    return { status: 'failed', message: `No answer within ${STEP_SECONDS} seconds.`, advice }
  }
  const isLate = reason instanceof Error && reason.name === 'TimeoutError'
  return {
    status: 'failed',
    message: `The check ${isLate ? 'ran out of time' : 'was stopped'} at this step.`,
    advice: isLate ? advice : 'Start it again.',
  }
}

function brokenDialogue(error: unknown): Found<never> {
  const code = errorCode(error)
  if (code === undefined) throw error
  const isGibberish = code === 'ENOTSMTP' || code === 'ETOOLONG'
  return {
    status: 'failed',
    message: isGibberish
      ? 'The server answered with something that is not SMTP.'
      : `The connection was closed without an answer${inBrackets(code)}.`,
    advice: isGibberish
      ? 'Something between this machine and the server may answer in its place: look for a proxy or a firewall.'
      : 'Look into the log of the mail server: it may block this machine, or be restarting.',
  }
}
