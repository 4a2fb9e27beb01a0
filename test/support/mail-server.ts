import { createServer, type AddressInfo, type Socket } from 'node:net'
import { simpleParser, type ParsedMail } from 'mailparser'
import { SMTPServer } from 'smtp-server'
import { isMailKind, linkKinds, MAIL_KINDS, type MailKind } from '../../src/ports/mail-kinds.ts'
import { eventually } from './eventually.ts'

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
}

/** A real SMTP server that keeps what it gets. */
export interface MailServer {
  port: number
  /** Those that it took. */
  mails: ReceivedMail[]
  /** Waits for the mail number `count` (from 1) to this address. */
  mailTo(address: string, count?: number): Promise<ReceivedMail>
  /** Every token that it saw, also in mails that it did not take, and in what came before a connection dropped. */
  tokensSeen(): Set<string>
  /** How many mails got each answer. */
  answered: Record<MailAnswer, number>
  logins: number
  /** The most connections that were open at one moment, since the start or since it fell silent. */
  mostOpen(): number
  /** Drops every connection; from now on it accepts connections and never speaks. */
  fallSilent(): void
  /** Speaks again, also on the connections that are open. */
  speak(): void
  /** Drops every connection; nothing listens on the port any more. */
  close(): Promise<void>
}

/** What one client said on one connection. */
interface Conversation {
  socket: Socket
  text: string
  /** Where in the text the mail under way starts. */
  mailStartsAt: number
  answer: MailAnswer
}

const HEADER = 'x-account-flows-mail'

export async function startMailServer(options: MailServerOptions = {}): Promise<MailServer> {
  const { login, answer = () => 'take' as const } = options
  const mails: ReceivedMail[] = []
  const conversations = new Map<number, Conversation>()
  const tokens = new Set<string>()
  const answered = { take: 0, defer: 0, 'defer after data': 0, refuse: 0, drop: 0 }
  const server = { mails, answered, logins: 0 }
  let isSilent = false
  let mostOpen = 0

  const conversationWith = ({ remotePort }: { remotePort: number }): Conversation => {
    const found = conversations.get(remotePort)
    if (!found) throw new Error('the connection is gone')
    return found
  }

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

    onRcptTo({ address }, session, callback) {
      const conversation = conversations.get(session.remotePort)
      if (!conversation) return callback(new Error('the connection is gone'))
      conversation.mailStartsAt = conversation.text.length
      conversation.answer = answer(address)
      answered[conversation.answer] += 1
      if (conversation.answer === 'defer') return callback(refusal(451, 'Try again later'))
      if (conversation.answer === 'refuse')
        return callback(refusal(550, `No such mailbox: <${address}>`))
      callback()
    },

    onData(stream, session, callback) {
      simpleParser(stream).then((mail) => {
        const conversation = conversationWith(session)
        const link = /https?:\/\/\S+/.exec(mail.text ?? '')?.[0] ?? ''
        keepTokens(conversation)
        if (conversation.answer === 'drop') return conversation.socket.destroy()
        // As a filter does that quotes what it does not like.
        if (conversation.answer === 'defer after data') {
          return callback(refusal(451, `Try again later, this looks odd: ${link}`))
        }
        const to = session.envelope.rcptTo.map(({ address }) => address)
        mails.push({ to, mail, link, kind: kindOf(mail, link) })
        // As one says it that thanks for the mail by quoting it.
        callback(null, `2.0.0 Ok: queued as 4F${mails.length}Qx, ${link}`)
      }, callback)
    },
  })
  smtp.on('error', () => {})

  function keepTokens({ text, mailStartsAt }: Conversation): number {
    const found = tokensIn(text.slice(mailStartsAt))
    for (const token of found) tokens.add(token)
    return found.length
  }

  function listenTo(socket: Socket) {
    const conversation = {
      socket,
      text: '',
      mailStartsAt: 0,
      answer: 'take',
    } satisfies Conversation
    const port = socket.remotePort ?? 0
    conversations.set(port, conversation)
    mostOpen = Math.max(mostOpen, conversations.size)
    socket.on('error', () => {})
    socket.once('close', () => {
      keepTokens(conversation)
      if (conversations.get(port) === conversation) conversations.delete(port)
    })
    // Without a reader, the end of a connection would not be seen.
    if (isSilent) socket.resume()
    else speakOn(conversation)
  }

  function speakOn(conversation: Conversation) {
    const { socket } = conversation
    socket.on('data', (chunk: Buffer) => {
      conversation.text += chunk.toString('latin1')
      if (conversation.answer === 'drop' && keepTokens(conversation) > 0) socket.destroy()
    })
    smtp.connect(socket, {})
  }

  function dropAll() {
    for (const { socket } of conversations.values()) socket.destroy()
    conversations.clear()
  }

  const listener = createServer(listenTo)
  await new Promise<void>((resolve, reject) => {
    listener.once('error', reject)
    listener.listen(options.port ?? 0, '127.0.0.1', resolve)
  })

  return Object.assign(server, {
    port: (listener.address() as AddressInfo).port,

    async mailTo(recipient: string, count = 1) {
      const its = () => mails.filter(({ to }) => to.includes(recipient))
      return eventually(`mail number ${count} to ${recipient}`, () => its()[count - 1])
    },

    tokensSeen() {
      for (const conversation of conversations.values()) keepTokens(conversation)
      return tokens
    },

    mostOpen: () => mostOpen,

    fallSilent() {
      isSilent = true
      dropAll()
      mostOpen = 0
    },

    speak() {
      if (!isSilent) return
      isSilent = false
      for (const conversation of conversations.values()) speakOn(conversation)
    },

    async close() {
      const closed = new Promise((resolve) => listener.close(resolve))
      dropAll()
      await closed
    },
  })
}

/** Every whole token in a part of an SMTP conversation, however the parts of its mails are encoded. */
export function tokensIn(text: string): string[] {
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
