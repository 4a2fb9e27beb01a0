import { later, type Clock } from '../clock.ts'
import { connect, type NetConnectOpts, type Socket } from 'node:net'
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls'

const FAREWELL_MS = 2_000
const MAX_REPLY_CHARS = 65_536
/** Of several addresses of a host, each is given so long before the next one is tried. */
const ADDRESS_MS = 2_000

export interface SmtpReply {
  code: number
  /** One for each line of the reply, without its code. */
  lines: string[]
}

/** What ended a dialogue; errors of the system and of TLS come as they are. */
export type DialogueErrorCode = 'ECLOSED' | 'ENOTSMTP' | 'ETOOLONG'

export class DialogueError extends Error {
  readonly code: DialogueErrorCode

  constructor(code: DialogueErrorCode) {
    super(code)
    this.code = code
  }
}

/**
 * A conversation with a mail server over a connection of its own, one command at a time. Every promise fails with the error that
 * ended the conversation; none has a time limit.
 */
export interface SmtpDialogue {
  /** Resolves as soon as there is a connection, with the address that it goes to. */
  connected(): Promise<string>
  /** Whether there was a connection at any time. */
  wasConnected(): boolean
  reply(): Promise<SmtpReply>
  ask(command: string): Promise<SmtpReply>
  /** Goes on over TLS, and forgets what was said in the clear. The caller judges the certificate, whatever the options say. */
  secure(options: ConnectionOptions): Promise<TLSSocket>
  /** Says these where somebody listens, whatever the answers, and resolves when the socket is closed, within 2 seconds. */
  close(farewell: string[]): Promise<void>
}

export function openSmtpDialogue(options: NetConnectOpts, clock: Clock): SmtpDialogue {
  const raw = connect({
    ...options,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: ADDRESS_MS,
  })
  const closed = new Promise<void>((resolve) => void raw.once('close', () => resolve()))
  let socket: Socket = raw
  let received = ''
  let failure: Error | undefined
  let isListening = false
  let isConnected = false
  let isInStep = false
  let wake = () => {}

  function end(error: Error): void {
    failure ??= error
    isInStep = false
    wake()
  }

  function follow(followed: Socket): void {
    followed.on('error', end)
    followed.once('close', () => end(new DialogueError('ECLOSED')))
  }

  function hear(chunk: Buffer): void {
    received += chunk.toString('latin1')
    wake()
  }

  function listen(): void {
    if (isListening) return
    isListening = true
    // The end of the other side alone would not be noticed before the next command.
    socket.on('data', hear).once('end', () => end(new DialogueError('ECLOSED')))
  }

  async function until<T>(look: () => T | undefined): Promise<T> {
    for (;;) {
      const seen = look()
      if (seen !== undefined) return seen
      if (failure) throw failure
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }

  function takeReply(): SmtpReply | undefined {
    const taken = replyIn(received)
    if (taken) received = received.slice(taken.length)
    return taken?.reply
  }

  async function reply(): Promise<SmtpReply> {
    isInStep = false
    listen()
    const taken = await until(takeReply)
    isInStep = taken.code !== 421
    return taken
  }

  async function ask(command: string): Promise<SmtpReply> {
    // An answer to what nobody asked would be taken for the one to this command; only a farewell is.
    if (received !== '' && !received.startsWith('421')) throw new DialogueError('ENOTSMTP')
    socket.write(`${command}\r\n`, 'latin1')
    return reply()
  }

  follow(raw)
  raw.once('connect', () => {
    isConnected = true
    wake()
  })

  return {
    reply,
    ask,

    connected: () => until(() => (isConnected ? raw.remoteAddress : undefined)),
    wasConnected: () => isConnected,

    async secure(options) {
      isInStep = false
      raw.off('data', hear)
      const secured = connectTls({ ...options, socket: raw, rejectUnauthorized: false })
      follow(secured)
      let hasShakenHands = false
      secured.once('secureConnect', () => {
        hasShakenHands = true
        wake()
      })
      await until(() => hasShakenHands || undefined)
      socket = secured
      received = ''
      isListening = false
      return secured
    },

    async close(farewell) {
      const cancel = later(clock, FAREWELL_MS, () => end(new DialogueError('ECLOSED')))
      for (const command of farewell) {
        if (isInStep) await ask(command).catch(() => {})
      }
      cancel()
      socket.destroy()
      await closed
    },
  }
}

/** `undefined`: the reply is not complete. Throws where it never will be one. */
function replyIn(received: string): { reply: SmtpReply; length: number } | undefined {
  const lines: string[] = []
  let start = 0
  for (;;) {
    const end = received.indexOf('\n', start)
    const line = received.slice(start, end < 0 ? undefined : end).replace(/\r$/, '')
    if (!isStartOfLine(line, end >= 0)) throw new DialogueError('ENOTSMTP')
    if (received.length > MAX_REPLY_CHARS && end < 0) throw new DialogueError('ETOOLONG')
    if (end < 0) return undefined
    lines.push(Buffer.from(line.slice(4), 'latin1').toString('utf8'))
    start = end + 1
    if (line[3] !== '-') return { reply: { code: Number(line.slice(0, 3)), lines }, length: start }
  }
}

function isStartOfLine(line: string, isWhole: boolean): boolean {
  return isWhole
    ? /^[2-5]\d\d(?:[ -]|$)/.test(line)
    : /^(?:[2-5]?|[2-5]\d\d?|[2-5]\d\d[ -].*)$/s.test(line)
}
