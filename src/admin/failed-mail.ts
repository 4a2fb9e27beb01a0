import { atStep, type MailFault } from '../errors.ts'
import type { RecordedEvent, User } from '../ports/index.ts'
import type { LinkKind } from '../ports/mail-kinds.ts'
import type { MailJobStatus } from '../records/index.ts'
import { nameOf, sendLink, type Diagnosis } from './causes.ts'

/**
 * Of a mail that the mail server did not take.
 *
 * @param job - what is left of it. `undefined`: it is gone.
 */
export function failed(
  event: RecordedEvent,
  user: User,
  kind: LinkKind,
  job: MailJobStatus | undefined,
): Diagnosis {
  const { step, code = 'unknown reason', reply }: Partial<MailFault> = event.details ?? {}
  const said = reply === undefined ? code : `"${reply.replaceAll('"', "'")}"`
  const fault = step === undefined ? said : `${said} ${atStep({ step })}`
  const isAnswer = /^\d/.test(code) && (step === 'RCPT TO' || step === 'DATA')
  const isTransport = step === 'transport'
  const look = isTransport || (reply === undefined && isAnswer) ? 'mail test' : 'doctor'
  const advice = `See account-flows ${look} --to ${user.email ?? ''}. ${nextOf(job, user, kind)}`
  const mail = `the last ${nameOf(kind)}`
  const isRefused = event.reason === 'ERR_MAIL_REFUSED'
  if (isTransport) {
    const cause = isRefused ? 'refused' : 'mail_server_down'
    const verb = isRefused ? `refused ${mail} for good` : `did not accept ${mail}`
    return { cause, summary: `The transport ${verb}: ${said}.`, advice }
  }
  if (isRefused) {
    // RFC 3463: x.1.x is about an address, all else is not.
    const isOfAddress = !/^\d{3} \d\.(?!1\.)/.test(code)
    const check = isOfAddress ? 'Check the address.' : 'Ask the operator of the mail server.'
    const summary = `The mail server refused ${mail} for good: ${fault}.`
    return { cause: 'refused', summary, advice: `${check} ${advice}` }
  }
  const cause = isAnswer ? 'refused' : 'mail_server_down'
  const verb = isAnswer ? `does not accept ${mail} now` : `could not be used for ${mail}`
  return { cause, summary: `The mail server ${verb}: ${fault}.`, advice }
}

function nextOf(job: MailJobStatus | undefined, user: User, kind: LinkKind): string {
  const next = job?.state === 'waiting' ? job.nextAttemptAt : undefined
  if (next) return `The next attempt is at ${next.toISOString()}.`
  const again =
    job?.state === 'dead' ? `account-flows outbox retry ${job.id}` : sendLink(user, kind)
  return `When this is fixed: ${again}`
}
