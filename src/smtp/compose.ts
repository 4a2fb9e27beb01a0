import { randomUUID } from 'node:crypto'
import MailComposer from 'nodemailer/lib/mail-composer'
import type { OutgoingMail } from '../ports/index.ts'
import type { SmtpSettings } from './settings.ts'

/**
 * A mail as it goes over the wire, from one plain address, which may have a name, to one other; it says nothing about this machine.
 */
export function composeMail(
  mail: OutgoingMail,
  { from, fromName = '' }: Pick<SmtpSettings, 'from' | 'fromName'>,
): Promise<Buffer> {
  const { to, subject, text, html, kind } = mail
  const composer = new MailComposer({
    from: { name: fromName, address: from },
    to: { name: '', address: to },
    messageId: `<${randomUUID()}@${domainOf(from)}>`,
    subject,
    text,
    html,
    headers: {
      'Auto-Submitted': 'auto-generated',
      'X-Auto-Response-Suppress': 'All',
      ...(kind !== undefined && { 'X-Account-Flows-Mail': kind }),
    },
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  return composer.compile().build()
}

export function domainOf(address: string): string {
  return address.slice(address.lastIndexOf('@') + 1)
}
