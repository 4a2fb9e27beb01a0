import { createServer, type Server, type Socket } from 'node:net'
import { TLSSocket, type TlsOptions } from 'node:tls'
import { simpleParser, type ParsedMail } from 'mailparser'
import { SMTPServer } from 'smtp-server'
import { isMailKind, linkKinds, MAIL_KINDS, type MailKind } from '../../src/contract/mail-kinds.ts'
import { eventually } from './eventually.ts'
import { freePort } from './serve.ts'

export interface ReceivedMail {
  to: string[]
  mail: ParsedMail
  /** The one link in the text part. */
  link: string
  /** `undefined`: neither its header nor its link says so. */
  kind: MailKind | undefined
}

/**
 * What becomes of one mail: taken; refused for now at its recipient, or after all of its data; refused for good; or the
 * connection drops in the middle of the data, once the whole token was seen.
 */
export type MailAnswer = 'take' | 'defer' | 'defer after data' | 'refuse' | 'drop'

export interface MailServerOptions {
  /** `undefined`: any free one. */
  port?: number
  /** Nobody else may send. `undefined`: everybody may. */
  login?: { username: string; password: string }
  /** Asked for each mail; every mail is taken without it. */
  answer?(recipient: string): MailAnswer
  /** Awaited at each point of a dialogue, which tells the recipient once somebody has named it. */
  reaches?(point: SmtpPoint, recipient?: string): Promise<unknown>
}

/** In their order. At `data complete` the mail is kept, and the client does not know yet. */
export const SMTP_POINTS = [
  'connected',
  'sender named',
  'recipient named',
  'data begun',
  'data complete',
  'accepted',
] as const

export type SmtpPoint = (typeof SMTP_POINTS)[number]

export type MailServer = Awaited<ReturnType<typeof startMailServer>>

/** What one client said on one connection. */
interface Conversation {
  socket: Socket
  text: string
  /** Where in the text the mail under way starts. */
  mailStartsAt: number
  answer: MailAnswer
}

const HEADER = 'x-account-flows-mail'

/** A real SMTP server that keeps what it gets. */
export async function startMailServer(options: MailServerOptions = {}) {
  /** What it says of a recipient, where that is not to take the mail. */
  const answers = new Map<string, MailAnswer>()
  const { login, reaches = async () => {} } = options
  const { answer = (to: string) => answers.get(to) ?? 'take' } = options
  /** Those that it took. */
  const mails: ReceivedMail[] = []
  const conversations: Conversation[] = []
  /** How many mails got each answer. */
  const answered = { take: 0, defer: 0, 'defer after data': 0, refuse: 0, drop: 0 }
  const server = { mails, answers, answered, logins: 0 }
  let isSilent = false
  let mostOpen = 0

  const open = () => conversations.filter(({ socket }) => !socket.destroyed)
  const conversationWith = ({ remotePort }: { remotePort: number }) =>
    open().find(({ socket }) => socket.remotePort === remotePort)

  const smtp = new SMTPServer({
    authOptional: login === undefined,
    allowInsecureAuth: true,
    disableReverseLookup: true,
    disabledCommands: login === undefined ? ['STARTTLS', 'AUTH'] : ['STARTTLS'],

    onAuth({ username, password }, _session, callback) {
      if (username !== login?.username || password !== login?.password) {
        return callback(new Error('Wrong login'))
      }
      server.logins += 1
      callback(null, { user: username ?? '' })
    },

    onConnect: (_session, callback) => void reaches('connected').then(() => callback(), callback),
    onMailFrom: (_address, _session, callback) =>
      void reaches('sender named').then(() => callback(), callback),

    onRcptTo({ address }, session, callback) {
      const conversation = conversationWith(session)
      if (!conversation) return callback(new Error('the connection is gone'))
      conversation.mailStartsAt = conversation.text.length
      conversation.answer = answer(address)
      answered[conversation.answer] += 1
      if (conversation.answer === 'defer') return callback(refusal(451, 'Try again later'))
      if (conversation.answer === 'refuse')
        return callback(refusal(550, `No such mailbox: <${address}>`))
      reaches('recipient named', address).then(() => callback(), callback)
    },

    onData(stream, session, callback) {
      const to = session.envelope.rcptTo.map(({ address }) => address)
      const receive = async () => {
        await reaches('data begun', to[0])
        const mail = await simpleParser(stream)
        const conversation = conversationWith(session)
        if (!conversation) throw new Error('the connection is gone')
        const link = /https?:\/\/\S+/.exec(mail.text ?? '')?.[0] ?? ''
        if (conversation.answer === 'drop') return conversation.socket.destroy()
        // As a filter does that quotes what it does not like.
        if (conversation.answer === 'defer after data') {
          return callback(refusal(451, `Try again later, this looks odd: ${link}`))
        }
        mails.push({ to, mail, link, kind: kindOf(mail, link) })
        await reaches('data complete', to[0])
        // As one says it that thanks for the mail by quoting it.
        callback(null, `2.0.0 Ok: queued as 4F${mails.length}Qx, ${link}`)
        await reaches('accepted', to[0])
      }
      receive().catch(callback)
    },
  })
  smtp.on('error', () => {})

  function listenTo(socket: Socket) {
    const conversation: Conversation = { socket, text: '', mailStartsAt: 0, answer: 'take' }
    conversations.push(conversation)
    mostOpen = Math.max(mostOpen, open().length)
    socket.on('error', () => {})
    // Without a reader, the end of a connection would not be seen.
    if (isSilent) socket.resume()
    else speakOn(conversation)
  }

  function speakOn(conversation: Conversation) {
    const { socket } = conversation
    socket.on('data', (chunk: Buffer) => {
      conversation.text += chunk.toString('latin1')
      const { text, mailStartsAt } = conversation
      if (conversation.answer === 'drop' && tokensIn(text.slice(mailStartsAt)).length > 0)
        socket.destroy()
    })
    smtp.connect(socket, {})
  }

  function dropAll() {
    for (const { socket } of open()) socket.destroy()
  }

  const listener = createServer(listenTo)

  return Object.assign(server, {
    port: await listening(listener, options.port),

    /** Waits for the mail number `count` (from 1) to this address. */
    async mailTo(recipient: string, count = 1): Promise<ReceivedMail> {
      const its = () => mails.filter(({ to }) => to.includes(recipient))
      return eventually(`mail number ${count} to ${recipient}`, () => its()[count - 1])
    },

    /** Every token that it saw, also in mails that it did not take, and in what came before a connection dropped. */
    tokensSeen: () => new Set(conversations.flatMap(({ text }) => tokensIn(text))),

    /** The most connections that were open at one moment, since the start or since it fell silent. */
    mostOpen: () => mostOpen,

    /** Drops every connection; from now on it accepts connections and never speaks. */
    fallSilent(): void {
      isSilent = true
      dropAll()
      mostOpen = 0
    },

    /** Speaks again, also on the connections that are open. */
    speak(): void {
      if (!isSilent) return
      isSilent = false
      open().forEach(speakOn)
    },

    /** Drops every connection; nothing listens on the port any more. */
    async close(): Promise<void> {
      const closed = new Promise((resolve) => listener.close(resolve))
      dropAll()
      await closed
    },
  })
}

/** Every whole token in a part of an SMTP conversation, however the parts of its mails are encoded. */
function tokensIn(text: string): string[] {
  const unquoted = text.replaceAll(/=\r?\n/g, '').replaceAll('=3D', '=')
  const base64 = /Content-Transfer-Encoding: base64[^]*?\r\n\r\n([A-Za-z0-9+/=\r\n]+)/gi
  const decoded = [...text.matchAll(base64)].map(([, body = '']) =>
    Buffer.from(body, 'base64').toString('latin1'),
  )
  const token = /token=([A-Za-z0-9_-]{43})(?![A-Za-z0-9_-])/g
  return [text, unquoted, ...decoded].flatMap((each) =>
    [...each.matchAll(token)].map(([, found = '']) => found),
  )
}

function kindOf({ headers }: ParsedMail, link: string): MailKind | undefined {
  const said = headers.get(HEADER)
  if (typeof said === 'string' && isMailKind(said)) return said
  return linkKinds.find((kind) => link.includes(`${MAIL_KINDS[kind].page}?`))
}

function refusal(responseCode: number, message: string): Error {
  return Object.assign(new Error(message), { responseCode })
}

/** Its port, once it listens; any free one by default. */
async function listening(server: Server, given?: number): Promise<number> {
  const port = given ?? (await freePort())
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, '127.0.0.1', resolve)
  })
  return port
}

const NEVER = {
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
}

/** Where in the dialogue a server is. `content` is the first part of a mail, `dot` the whole of it. */
export type Step = keyof typeof NEVER

interface Dialogue {
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

interface TakenMail {
  from: string
  to: string[]
  raw: string
  isSecure: boolean
  /** `undefined`: nobody logged in. */
  user: string | undefined
  password: string | undefined
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
}

export type FaultySmtp = Awaited<ReturnType<typeof startFaultySmtp>>

/** An SMTP server over a raw socket that goes wrong where it is told to. */
export async function startFaultySmtp(options: FaultySmtpOptions = {}) {
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
  const smtp = {
    port: await listening(server),
    connections: 0,
    /** Connections that are open at this moment. */
    open: 0,
    steps: { ...NEVER },
    logins: [] as { user: string; password: string; isSecure: boolean }[],
    /** Complete mails, also those for which nobody got an answer. */
    mails: [] as TakenMail[],

    /** Waits until the server came to a step so many times. */
    async reaches(step: Step, count = 1): Promise<void> {
      await eventually(`the server comes to ${step}`, () => smtp.steps[step] >= count)
    },

    async close(): Promise<void> {
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
  let login: { user?: string; password?: string } = {}
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
      if (isTaken(at('AUTH', line, '235 Welcome'))) login = { user: name, password }
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
    const { user, password } = login
    smtp.mails.push({ from, to, raw: received.slice(0, end), isSecure, user, password })
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

/** Does this in place of an answer. */
export function acts(when: Step, act: (socket: Socket) => unknown): Fault {
  return (step, { socket }) => {
    if (step !== when) return undefined
    act(socket)
    return ''
  }
}

/** Answers with one byte after the other, for ever: no time-out of inactivity ends it. */
export function trickles(when: Step): Fault {
  return acts(when, (socket) => {
    socket.write('250-')
    const timer = setInterval(() => socket.write('x'), 10)
    socket.once('close', () => clearInterval(timer))
  })
}

/** Answers with lines of one answer that never ends, as fast as they are read. */
export function neverEnds(when: Step): Fault {
  return acts(when, (socket) => {
    const more = () => {
      while (!socket.destroyed && socket.write(`250-${'x'.repeat(1_000)}\r\n`));
    }
    socket.on('drain', more)
    more()
  })
}

/** Says 421, and closes. */
export function goesAway(when: Step): Fault {
  return acts(when, (socket) => socket.end('421 4.3.2 Shutting down\r\n'))
}

/** Drops the connection without a word. At `content` in the middle of a mail; at `dot` nobody knows whether it was taken. */
export function drops(when: Step): Fault {
  return acts(when, (socket) => socket.destroy())
}

/** Says this in place of the honest answer. */
export function answers(when: Step, reply: string): Fault {
  return (step) => (step === when ? reply : undefined)
}
