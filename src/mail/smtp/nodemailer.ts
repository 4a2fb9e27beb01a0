import { createRequire } from 'node:module'
import type MimeNode from 'nodemailer/lib/mime-node'
import type * as qp from 'nodemailer/lib/qp'
import type SMTPConnection from 'nodemailer/lib/smtp-connection'

interface Nodemailer {
  SMTPConnection: typeof SMTPConnection
  MimeNode: typeof MimeNode
  qp: typeof qp
}

const load = createRequire(import.meta.url)

/**
 * What we use of the library. It is loaded with the first call, so that the package is imported faster. The sender calls it before
 * the first mail, which is then no slower than others.
 */
export function nodemailer(): Nodemailer {
  return {
    SMTPConnection: load('nodemailer/lib/smtp-connection'),
    MimeNode: load('nodemailer/lib/mime-node'),
    qp: load('nodemailer/lib/qp'),
  }
}
