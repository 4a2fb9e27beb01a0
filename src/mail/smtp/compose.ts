import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import { AccountFlowsError } from '../../errors.ts'
import type { OutgoingMail } from '../sending.ts'
import { isMailAddress } from '../../settings/addresses.ts'
import type { Settings } from '../../settings/table.ts'
import type MimeNode from 'nodemailer/lib/mime-node'
import type * as qp from 'nodemailer/lib/qp'
import type SMTPConnection from 'nodemailer/lib/smtp-connection'

/**
 * A mail in its wire format, from one plain address to one other. It reveals nothing about this machine. The two parts are joined here,
 * because the streams of the library take five times as long.
 */
export function composeMail(
  { to, subject, text, html, kind }: OutgoingMail,
  settings: Pick<Settings, 'smtpFromName' | 'mailReplyTo'> & { smtpFrom: string },
  messageId = newMessageId(settings.smtpFrom),
): Buffer {
  const { smtpFrom: from, smtpFromName: fromName = '', mailReplyTo: replyTo } = settings
  mustBeAddress(to)
  const { MimeNode } = nodemailer()
  const node = new MimeNode('multipart/alternative')
  node.setHeader([
    ...Object.entries(headersOf(kind)).map(([key, value]) => ({ key, value })),
    { key: 'From', value: { name: fromName, address: from } },
    ...(replyTo ? [{ key: 'Reply-To', value: { name: '', address: replyTo } }] : []),
    { key: 'To', value: { name: '', address: to } },
    { key: 'Subject', value: subject },
    { key: 'Message-ID', value: messageId },
  ])
  const headers = node.buildHeaders()
  const parts = [partOf('plain', text), partOf('html', html)]
  const lines = [headers, '', ...parts.flatMap((part) => [`--${node.boundary}`, part])]
  return Buffer.from([...lines, `--${node.boundary}--`, ''].join('\r\n'))
}

/** Call this before anything is said to a server. */
export function mustBeAddress(to: string): void {
  if (isMailAddress(to)) return
  throw new AccountFlowsError('ERR_MAIL_ADDRESS', 'The recipient is not one plain address')
}

export function headersOf(kind: OutgoingMail['kind']): Record<string, string> {
  return {
    'Auto-Submitted': 'auto-generated',
    'X-Auto-Response-Suppress': 'All',
    ...(kind !== undefined && { 'X-Account-Flows-Mail': kind }),
  }
}

function partOf(type: 'plain' | 'html', content: string): string {
  const { encode, wrap } = nodemailer().qp
  const lines = content.replaceAll(/\r\n?|\n/g, '\r\n')
  return [
    `Content-Type: text/${type}; charset=utf-8`,
    'Content-Transfer-Encoding: quoted-printable',
    '',
    wrap(encode(lines)),
  ].join('\r\n')
}

export const newMessageId = (from: string) => `<${randomUUID()}@${domainOf(from)}>`
export const domainOf = (address: string) => address.slice(address.lastIndexOf('@') + 1)

let library: ReturnType<typeof loadNodemailer> | undefined

/** The first call loads the library, so that the package is imported faster. The sender calls it before the first mail. */
export const nodemailer = () => (library ??= loadNodemailer())

function loadNodemailer() {
  const load = createRequire(import.meta.url)
  const connection: typeof SMTPConnection = load('nodemailer/lib/smtp-connection')
  const mimeNode: typeof MimeNode = load('nodemailer/lib/mime-node')
  const quotedPrintable: typeof qp = load('nodemailer/lib/qp')
  return { SMTPConnection: connection, MimeNode: mimeNode, qp: quotedPrintable }
}
