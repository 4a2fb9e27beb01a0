/**
 * A mail server in a process of its own, so that mails cost the measuring process little. It tells its port. As its argument says, mails
 * are `taken`; or `told`, the recipient and the first link of each; or `refused`; or it is `silent`.
 *
 * @module
 */
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'

const mode = process.argv[2]

const smtp = new SMTPServer({
  authOptional: true,
  disableReverseLookup: true,
  disabledCommands: ['STARTTLS', 'AUTH'],
  onRcptTo(_address, _session, done) {
    const refusal = Object.assign(new Error('No such mailbox'), { responseCode: 550 })
    done(mode === 'refused' ? refusal : null)
  },
  async onData(stream, session, done) {
    const parts: Buffer[] = []
    stream.on('data', (chunk: Buffer) => parts.push(chunk))
    await once(stream, 'end')
    const to = session.envelope.rcptTo[0]?.address
    if (mode === 'told')
      process.send?.({ to, link: firstLink(Buffer.concat(parts).toString('latin1')) })
    done()
  },
})
smtp.on('error', () => {})

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

const server = createServer((socket) => {
  socket.on('error', () => {})
  if (mode === 'silent') socket.resume()
  else smtp.connect(socket, {})
})
server.listen(0, '127.0.0.1', () =>
  process.send?.({ port: (server.address() as AddressInfo).port }),
)
process.once('disconnect', () => process.exit())
