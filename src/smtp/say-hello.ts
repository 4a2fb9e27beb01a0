import { isMailAddress } from '../settings/mail-address.ts'
import { domainOf } from './compose.ts'
import type { SmtpDialogue, SmtpReply } from './dialogue.ts'

/** What the server can do. `extensions` is `undefined` where it knows only HELO. */
export interface Hello {
  reply: SmtpReply
  isRefused: boolean
  extensions: string[] | undefined
}

/** Says EHLO, and HELO where that is refused and `mayFallBack`. */
export async function sayHello(
  dialogue: SmtpDialogue,
  from: string,
  mayFallBack: boolean,
): Promise<Hello> {
  const name = isMailAddress(from) ? domainOf(from) : 'localhost'
  const reply = await dialogue.ask(`EHLO ${name}`)
  if (isTaken(reply)) return { reply, isRefused: false, extensions: reply.lines.slice(1) }
  if (reply.code === 421 || !mayFallBack) return { reply, isRefused: true, extensions: undefined }
  const second = await dialogue.ask(`HELO ${name}`)
  return { reply: second, isRefused: !isTaken(second), extensions: undefined }
}

export function isTaken({ code }: SmtpReply): boolean {
  return code >= 200 && code < 300
}
