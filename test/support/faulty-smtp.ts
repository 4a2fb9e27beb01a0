import { createServer, type AddressInfo, type Socket } from 'node:net'
import { TLSSocket, type TlsOptions } from 'node:tls'
import { eventually } from './eventually.ts'

/** Where in the dialogue a server is. `content` is the first part of a mail, `dot` the whole of it. */
export type Step =
  | 'greeting'
  | 'EHLO'
  | 'STARTTLS'
  | 'AUTH'
  | 'MAIL'
  | 'RCPT'
  | 'DATA'
  | 'content'
  | 'dot'
  | 'RSET'
  | 'QUIT'
  | 'other'

export interface Dialogue {
  /** The one that is talked over: after STARTTLS the TLS socket. */
  socket: Socket
  isSecure: boolean
  /** The command, as it came; empty where the client says nothing. */
  line: string
  /** How often this server came to this step, this time included. */
  count: number
  /** Number of the connection, from 1. */
  connection: number
}

/** What a server says at a step: lines, `''` for nothing at all, `undefined` for what an honest one says. */
export type Fault = (step: Step, dialogue: Dialogue) => string | undefined

export interface TakenMail {
  from: string
  to: string[]
  raw: string
  isSecure: boolean
  /** `undefined`: nobody logged in. */
  user: string | undefined
}

export interface FaultySmtpOptions {
  fault?: Fault
  /** Key and certificate: offers STARTTLS. */
  tls?: TlsOptions
  /** TLS from the first byte. */
  isImplicitTls?: boolean
  /** Offers AUTH PLAIN, and takes every user and password. */
  offersAuth?: boolean
  /** Offers PIPELINING. */
  offersPipelining?: boolean
  host?: string
}

/** An SMTP server over a raw socket that goes wrong where it is told to. */
export interface FaultySmtp {
  host: string
  port: number
  connections: number
  /** Connections that are open at this moment. */
  open: number
  steps: Record<Step, number>
  logins: { user: string; password: string; isSecure: boolean }[]
  /** Complete mails, also those for which nobody got an answer. */
  mails: TakenMail[]
  /** Waits until the server came to a step so many times. */
  reaches(step: Step, count?: number): Promise<void>
  close(): Promise<void>
}

export async function startFaultySmtp(options: FaultySmtpOptions = {}): Promise<FaultySmtp> {
  const { host = '127.0.0.1' } = options
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    smtp.connections += 1
    smtp.open += 1
    sockets.add(socket.on('error', () => {}))
    socket.on('close', () => {
      smtp.open -= 1
      sockets.delete(socket)
    })
    talk(socket, options, smtp)
  })
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  const smtp: FaultySmtp = {
    host,
    port: (server.address() as AddressInfo).port,
    connections: 0,
    open: 0,
    steps: {
      greeting: 0,
      EHLO: 0,
      STARTTLS: 0,
      AUTH: 0,
      MAIL: 0,
      RCPT: 0,
      DATA: 0,
      content: 0,
      dot: 0,
      RSET: 0,
      QUIT: 0,
      other: 0,
    },
    logins: [],
    mails: [],
    async reaches(step, count = 1) {
      await eventually(`the server comes to ${step}`, () => smtp.steps[step] >= count)
    },
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
  return smtp
}

function talk(raw: Socket, options: FaultySmtpOptions, smtp: FaultySmtp): void {
  const connection = smtp.connections
  let socket = raw
  let isSecure = false
  let received = ''
  let isReadingMail = false
  let hasBegun = false
  let user: string | undefined
  let from = ''
  let to: string[] = []

  function at(step: Step, line: string, honest: string): string {
    smtp.steps[step] += 1
    const dialogue = { socket, isSecure, line, count: smtp.steps[step], connection }
    const reply = options.fault?.(step, dialogue) ?? honest
    if (reply !== '' && !socket.destroyed) socket.write(`${reply}\r\n`)
    return reply
  }

  function secure() {
    socket = new TLSSocket(raw, { ...options.tls, isServer: true })
    isSecure = true
    received = ''
    // Where the client leaves during the handshake, there is only an end.
    socket.on('error', () => {}).on('end', () => raw.destroy())
  }

  const isTaken = (reply: string) => reply.startsWith('2')

  const addressIn = (line: string) => line.slice(line.indexOf('<') + 1, line.indexOf('>'))

  const commands: Record<string, (line: string) => void> = {
    EHLO: (line) => at('EHLO', line, offers()),
    RSET: (line) => at('RSET', line, '250 Ok'),

    STARTTLS(line) {
      const honest = options.tls && !isSecure ? '220 Go ahead' : '500 What is that?'
      if (!at('STARTTLS', line, honest).startsWith('220') || !options.tls) return
      raw.removeAllListeners('data')
      secure()
      listen()
    },

    AUTH(line) {
      const [, name = '', password = ''] = atob(line.split(' ')[2] ?? '').split('\0')
      smtp.logins.push({ user: name, password, isSecure })
      if (isTaken(at('AUTH', line, '235 Welcome'))) user = name
    },

    MAIL(line) {
      from = addressIn(line)
      to = []
      at('MAIL', line, '250 Ok')
    },

    RCPT(line) {
      if (isTaken(at('RCPT', line, '250 Ok'))) to.push(addressIn(line))
    },

    DATA(line) {
      const honest = to.length > 0 ? '354 Go on' : '503 Nobody to send it to'
      isReadingMail = at('DATA', line, honest).startsWith('3')
    },

    QUIT(line) {
      if (isTaken(at('QUIT', line, '221 Bye'))) socket.end()
    },
  }

  function obey(line: string): void {
    const [verb = ''] = line.split(/[ :]/, 1)
    const command = commands[verb.toUpperCase()]
    if (command) command(line)
    else at('other', line, '500 What is that?')
  }

  function offers(): string {
    const extensions = ['here']
    if (options.tls && !isSecure) extensions.push('STARTTLS')
    if (options.offersAuth) extensions.push('AUTH PLAIN')
    if (options.offersPipelining) extensions.push('PIPELINING')
    const last = extensions.pop()
    return [...extensions.map((extension) => `250-${extension}`), `250 ${last}`].join('\r\n')
  }

  /** Whether the mail is complete. */
  function readMail(): boolean {
    if (!hasBegun) at('content', '', '')
    hasBegun = true
    const end = received.indexOf('\r\n.\r\n')
    if (end < 0 || socket.destroyed) return false
    isReadingMail = false
    hasBegun = false
    smtp.mails.push({ from, to, raw: received.slice(0, end), isSecure, user })
    received = received.slice(end + 5)
    at('dot', '', '250 Taken')
    return true
  }

  function listen() {
    const current = socket
    current.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1')
      while (current === socket && !current.destroyed) {
        if (isReadingMail) {
          if (!readMail()) return
          continue
        }
        const end = received.indexOf('\r\n')
        if (end < 0) return
        const line = received.slice(0, end)
        received = received.slice(end + 2)
        obey(line)
      }
    })
  }

  if (options.isImplicitTls) secure()
  listen()
  at('greeting', '', '220 here ESMTP')
}

/** Only the first `count` connections meet the fault; later ones meet an honest server. */
export function onFirst(count: number, fault: Fault): Fault {
  return (step, dialogue) => (dialogue.connection <= count ? fault(step, dialogue) : undefined)
}

/** From this step on, it says nothing. */
export function fallsSilent(when: Step): Fault {
  let isSilent = false
  return (step) => {
    isSilent ||= step === when
    return isSilent ? '' : undefined
  }
}

/** Answers with one byte after the other, for ever: no time-out of inactivity ends it. */
export function trickles(when: Step): Fault {
  return (step, { socket }) => {
    if (step !== when) return undefined
    socket.write('250-')
    const timer = setInterval(() => socket.write('x'), 10)
    socket.once('close', () => clearInterval(timer))
    return ''
  }
}

/** Answers with lines of one answer that never ends, as fast as they are read. */
export function neverEnds(when: Step): Fault {
  return (step, { socket }) => {
    if (step !== when) return undefined
    const more = () => {
      while (!socket.destroyed && socket.write(`250-${'x'.repeat(1_000)}\r\n`));
    }
    socket.on('drain', more)
    more()
    return ''
  }
}

/** Says 421, and closes. */
export function goesAway(when: Step): Fault {
  return (step, { socket }) => {
    if (step !== when) return undefined
    socket.end('421 4.3.2 Shutting down\r\n')
    return ''
  }
}

/** Drops the connection without a word. At `content` in the middle of a mail; at `dot` nobody knows whether it was taken. */
export function drops(when: Step): Fault {
  return (step, { socket }) => {
    if (step !== when) return undefined
    socket.destroy()
    return ''
  }
}

/** Says this in place of the honest answer. */
export function answers(when: Step, reply: string): Fault {
  return (step) => (step === when ? reply : undefined)
}

/** Greylisting: the first recipient is told to come again. */
export const greylists: Fault = (step, { count }) =>
  step === 'RCPT' && count === 1 ? '451 4.7.1 Come again later' : undefined
