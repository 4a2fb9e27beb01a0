import { atStep, type MailFault } from '../errors.ts'
import type { RecordedEvent } from '../contract/index.ts'
import { nameOf, sendLink, type Facts, type Words } from './facts.ts'

const faultOf = (event?: RecordedEvent): Partial<MailFault> => event?.details ?? {}

/** Whether the mail server said so of this mail; otherwise it accepts none. */
export function isRefusal(event: RecordedEvent): boolean {
  return event.reason === 'ERR_MAIL_REFUSED' || isAnswer(faultOf(event))
}

const isAnswer = ({ step = '', code = '' }: Partial<MailFault>) =>
  /^\d/.test(code) && ['RCPT TO', 'DATA'].includes(step)

/** Of a mail that the mail server did not take, or a transport in its place. */
export function failedWords(facts: Facts): Words {
  const { event, user } = facts
  const fault = faultOf(event)
  const { step, code = 'unknown reason', reply } = fault
  const isTransport = step === 'transport'
  const isForGood = event?.reason === 'ERR_MAIL_REFUSED'
  const mail = `the last ${nameOf(facts)}`
  const failed = isAnswer(fault) ? `does not accept ${mail} now` : `could not be used for ${mail}`
  const later = isTransport ? `did not accept ${mail}` : failed
  const said = reply === undefined ? code : `"${reply.replaceAll('"', "'")}"`
  const at = step === undefined || isTransport ? '' : ` ${atStep({ step })}`
  // RFC 3463: x.1.x is about an address, all else is not.
  const isOfAddress = !/^\d{3} \d\.(?!1\.)/.test(code)
  const check = isOfAddress ? 'Check the address. ' : 'Ask the operator of the mail server. '
  const look = isTransport || (reply === undefined && isAnswer(fault)) ? 'mail test' : 'doctor'
  return [
    `The ${isTransport ? 'transport' : 'mail server'} ${isForGood ? `refused ${mail} for good` : later}: ${said}${at}.`,
    `${isForGood && !isTransport ? check : ''}See account-flows ${look} --to ${user.email ?? ''}. ${nextOf(facts)}`,
  ]
}

function nextOf({ job, ...facts }: Facts): string {
  const next = job?.state === 'waiting' ? job.nextAttemptAt : undefined
  if (next) return `The next attempt is at ${next.toISOString()}.`
  const again = job?.state === 'dead' ? `account-flows outbox retry ${job.id}` : sendLink(facts)
  return `When this is fixed: ${again}`
}
