import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'

export interface LoginRecorder {
  port: string
  /** User and password of each login; neither, for a mail without one. */
  logins: (string | undefined)[][]
  close(): Promise<void>
}

/** An SMTP server that takes every mail, with every login or none. */
export async function startLoginRecorder(): Promise<LoginRecorder> {
  const logins: (string | undefined)[][] = []
  const smtp = new SMTPServer({
    authOptional: true,
    allowInsecureAuth: true,
    disabledCommands: ['STARTTLS'],
    onAuth({ username, password }, _session, callback) {
      logins.push([username ?? '', password ?? ''])
      callback(null, { user: 'mailer' })
    },
    onData(stream, { user }, callback) {
      if (user === undefined) logins.push([undefined, undefined])
      stream.resume().on('end', () => callback())
    },
  })
  smtp.listen(0)
  await once(smtp.server, 'listening')
  return {
    port: String((smtp.server.address() as AddressInfo).port),
    logins,
    close: () => new Promise<void>((resolve) => smtp.close(resolve)),
  }
}
