/**
 * A mail server that takes every mail, refuses every recipient, or never speaks, as its argument says. It is a process of its own, so
 * that mails cost the measuring process nothing. Prints its port.
 *
 * @module
 */
import { createServer, type AddressInfo, type Server } from 'node:net'
import { SMTPServer } from 'smtp-server'

function mailServer(refuses: boolean): Server {
  const smtp = new SMTPServer({
    authOptional: true,
    disableReverseLookup: true,
    disabledCommands: ['STARTTLS', 'AUTH'],
    onRcptTo(_address, _session, callback) {
      callback(refuses ? Object.assign(new Error('No such mailbox'), { responseCode: 550 }) : null)
    },
    onData(stream, _session, callback) {
      stream.resume().once('end', () => callback())
    },
  })
  smtp.on('error', () => {})
  return createServer((socket) => {
    socket.on('error', () => {})
    smtp.connect(socket, {})
  })
}

const mode = process.argv[2]
const server =
  mode === 'silent'
    ? createServer((socket) => socket.on('error', () => {}).resume())
    : mailServer(mode === 'refuses')
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port))
// Ends with the process that started it.
process.stdin.resume().once('end', () => process.exit(0))
