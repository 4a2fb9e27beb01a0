import { isMailAddress } from '../settings/mail-address.ts'
import type { OutgoingMail } from '../ports/index.ts'
import { composeMail } from './compose.ts'
import type { Found } from './found.ts'
import { isTaken } from './say-hello.ts'
import type { SmtpDialogue, SmtpReply } from './dialogue.ts'
import type { SmtpSettings } from './settings.ts'

const LATER = 'Try again in a few minutes.'

export async function checkFrom(dialogue: SmtpDialogue, settings: SmtpSettings): Promise<Found> {
  const { from, username } = settings
  if (!isMailAddress(from)) {
    const message = 'smtp_from is not one plain mail address.'
    return { status: 'failed', message, advice: 'Set smtp_from to an address such as a@b.example.' }
  }
  const reply = await dialogue.ask(`MAIL FROM:<${from}>`)
  if (isTaken(reply)) {
    return { status: 'ok', message: `The server takes mail from ${from}.`, reply, next: undefined }
  }
  const wantsLogin = reply.code === 530 && !username
  return {
    status: 'failed',
    message: wantsLogin
      ? 'The server wants a login first (530), and there is no smtp_username and smtp_password.'
      : `The server refuses the sender ${from} ${forHowLong(reply)}.`,
    reply,
    advice: wantsLogin
      ? 'Set smtp_username and smtp_password.'
      : isForNow(reply)
        ? LATER
        : 'Set smtp_from to an address that this login may send from, or register its domain with the provider.',
  }
}

export async function checkRcpt(dialogue: SmtpDialogue, to: string | undefined): Promise<Found> {
  if (to === undefined) {
    const message = 'No recipient was tried.'
    return { status: 'skipped', message, advice: 'Give an address to try one.', next: undefined }
  }
  if (!isMailAddress(to)) {
    return {
      status: 'failed',
      message: 'The recipient is not one plain mail address, so nothing was said to the server.',
      advice: 'Give one address such as ada@example.org, without a name or brackets.',
    }
  }
  const reply = await dialogue.ask(`RCPT TO:<${to}>`)
  if (!isTaken(reply)) return refusedRecipient(reply, to)
  return { status: 'ok', message: `The server takes mail to ${to}.`, reply, next: undefined }
}

export async function checkData(
  dialogue: SmtpDialogue,
  sender: Pick<SmtpSettings, 'from' | 'fromName'>,
  mail: OutgoingMail | undefined,
): Promise<Found> {
  if (!mail) {
    return { status: 'skipped', message: 'No mail was sent: none was given.', next: undefined }
  }
  const content = composeMail(mail, sender)
  const first = await dialogue.ask('DATA')
  if (first.code !== 354) return refusedMail(first, 'before its content')
  const reply = await dialogue.ask(onTheWire(content))
  if (!isTaken(reply)) return refusedMail(reply, 'after its content')
  return { status: 'ok', message: 'The server took the mail.', reply, next: undefined }
}

/** Ends with the line that ends a mail; the last line break comes from the dialogue. */
function onTheWire(content: Buffer): string {
  const lines = content
    .toString('latin1')
    .replace(/\r?\n$/, '')
    .split(/\r?\n/)
  return [...lines.map((line) => (line.startsWith('.') ? `.${line}` : line)), '.'].join('\r\n')
}

function refusedRecipient(reply: SmtpReply, to: string): Found {
  const isNoRelay = /relay/i.test(reply.lines.join(' ')) || reply.code === 530
  return {
    status: 'failed',
    message: `The server refuses mail to ${to} ${forHowLong(reply)}.`,
    reply,
    advice: isForNow(reply)
      ? 'It may be greylisting, which lets a second try through: try again in a few minutes.'
      : isNoRelay
        ? 'It forwards nothing for us without a login, or from this machine: set smtp_username and smtp_password, or ask its operator.'
        : 'See whether the address exists. If every address is refused, the server does not forward mail of this sender.',
  }
}

function refusedMail(reply: SmtpReply, when: string): Found {
  return {
    status: 'failed',
    message: `The server refuses the mail ${when}, ${forHowLong(reply)}.`,
    reply,
    advice: isForNow(reply)
      ? LATER
      : 'It is a filter, a quota, or a rule of the domain of smtp_from (SPF, DKIM, DMARC): its answer tells which.',
  }
}

function isForNow({ code }: SmtpReply): boolean {
  return code < 500
}

function forHowLong(reply: SmtpReply): string {
  return `${isForNow(reply) ? 'for now' : 'for good'} (${reply.code})`
}
