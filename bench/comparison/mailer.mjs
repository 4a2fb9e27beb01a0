// The same mail transport for the floor and the peers, so that all pay the same for a mail.
import { createTransport } from 'nodemailer'

export const FROM = 'no-reply@bench.example'

const transport = {
  host: '127.0.0.1',
  port: Number(process.env.SMTP_PORT),
  pool: true,
  maxConnections: 4,
  maxMessages: Infinity,
  ignoreTLS: true,
}

export const createMailer = () => createTransport(transport, { from: FROM })

export function sendWith(mailer, mail) {
  mailer.sendMail(mail).catch((error) => console.error(error.message))
}

export function listen(server) {
  server.listen(Number(process.env.PORT), '127.0.0.1', 1024, () => console.log('READY'))
}
