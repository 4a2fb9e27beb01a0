/** A mail server in a process of its own. Tells its port, and then the recipient and the first link of each mail. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'

const server = new SMTPServer({
  authOptional: true,
  disableReverseLookup: true,
  disabledCommands: ['STARTTLS', 'AUTH'],
  async onData(stream, session, done) {
    const parts: Buffer[] = []
    stream.on('data', (chunk: Buffer) => parts.push(chunk))
    await once(stream, 'end')
    const to = session.envelope.rcptTo[0]?.address
    process.send?.({ to, link: firstLink(Buffer.concat(parts).toString('latin1')) })
    done()
  },
})

function firstLink(mail: string): string | undefined {
  const isQuoted = /^content-transfer-encoding: quoted-printable/im.test(mail)
  const text = isQuoted ? unquoted(mail) : mail
  return /https?:\/\/[^\s"<>]+/.exec(text)?.[0].replaceAll('&amp;', '&')
}

function unquoted(text: string): string {
  return text
    .replaceAll(/=\r?\n/g, '')
    .replaceAll(/=([0-9A-F]{2})/g, (_all, hex: string) => String.fromCharCode(parseInt(hex, 16)))
}

server.listen(0, '127.0.0.1', () => {
  process.send?.({ port: (server.server.address() as AddressInfo).port })
})
process.once('disconnect', () => process.exit())
