import { on, once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'

/** One kept-alive connection that shows each answer as it came, byte for byte, and how long it took. */
export interface Wire {
  /** One at a time. Opens the connection again where the server has closed it. Throws when it breaks. */
  ask(request: WireRequest): Promise<WireAnswer>
  /** Of this side, while it is open. */
  localPort(): number
  close(): void
}

export interface WireRequest {
  bytes: Buffer
  /** How long the last byte is held back. `undefined`: all is sent at once. */
  lastByteAfterMs?: number | undefined
}

export interface WireAnswer {
  status: number
  /** Status line and headers, without the empty line. */
  head: string
  body: string
  /** From when the last byte of the request was written until the last byte of the answer was read. */
  milliseconds: number
}

/** Where to connect to; a relay, for example. */
export interface Place {
  host: string
  port: number
}

export async function openWire(url: URL, place: Place = placeOf(url)): Promise<Wire> {
  let socket = await open(url, place)

  return {
    async ask({ bytes, lastByteAfterMs }) {
      if (socket.destroyed || socket.readableEnded) socket = await open(url, place)
      if (lastByteAfterMs !== undefined) {
        socket.write(bytes.subarray(0, -1))
        await sleep(lastByteAfterMs)
      }
      const answer = nextAnswer(socket)
      socket.write(lastByteAfterMs === undefined ? bytes : bytes.subarray(-1))
      const from = performance.now()
      const { at, ...rest } = await answer
      if (/^connection: *close/im.test(rest.head)) socket.destroy()
      return { ...rest, milliseconds: at - from }
    },
    localPort: () => socket.localPort ?? 0,
    close: () => socket.destroy(),
  }
}

export function placeOf({ protocol, hostname, port }: URL): Place {
  const host = hostname.replace(/^\[|\]$/g, '')
  return { host, port: Number(port || (protocol === 'https:' ? 443 : 80)) }
}

export function getRequest(url: URL): Buffer {
  return Buffer.from(`GET ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\n\r\n`)
}

export function postRequest(url: URL, fields: Record<string, string>, cookie?: string): Buffer {
  const body = new URLSearchParams(fields).toString()
  const head = [
    `POST ${url.pathname} HTTP/1.1`,
    `Host: ${url.host}`,
    ...(cookie === undefined ? [] : [`Cookie: ${cookie}`]),
    'Content-Type: application/x-www-form-urlencoded',
    `Content-Length: ${body.length}`,
  ]
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`)
}

async function open(url: URL, { host, port }: Place): Promise<Socket> {
  const isSecure = url.protocol === 'https:'
  const socket = isSecure
    ? connectTls({ host, port, servername: url.hostname })
    : connect({ host, port })
  socket.setNoDelay(true)
  await new Promise((resolve, reject) => {
    socket.once(isSecure ? 'secureConnect' : 'connect', resolve)
    socket.once('error', reject)
  })
  socket.on('error', () => {})
  return socket
}

async function nextAnswer(socket: Socket) {
  let text = ''
  for await (const [chunk] of on(socket, 'data', { close: ['close'] })) {
    const at = performance.now()
    text += chunk.toString('latin1')
    const answer = wholeAnswer(text)
    if (answer) return { ...answer, at }
  }
  throw new Error('The connection was closed before the answer was complete')
}

/** `undefined`: more is to come. */
function wholeAnswer(text: string): Omit<WireAnswer, 'milliseconds'> | undefined {
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const head = text.slice(0, end)
  const body = text.slice(end + 4)
  const length = /^content-length: *(\d+)/im.exec(head)?.[1]
  const isWhole = length === undefined ? body.endsWith('0\r\n\r\n') : body.length >= Number(length)
  return isWhole ? { status: Number(head.slice(9, 12)), head, body } : undefined
}

/** A TCP relay that holds answers back: what a leak looks like, without one in the product. */
export interface Relay extends Place {
  /** For answers on the connection from this port. */
  holdBack(clientPort: number, milliseconds: number): void
  close(): void
}

/** `everyAnswerMs`: how long an answer is held back on connections for which nothing else was said. */
export async function startRelay(target: Place, everyAnswerMs = 0): Promise<Relay> {
  const held = new Map<number, number>()
  const ends: (() => void)[] = []

  const server = createServer((near) => {
    const far = connect(target)
    const end = () => {
      near.destroy()
      far.destroy()
    }
    ends.push(end)
    for (const socket of [near, far]) socket.setNoDelay(true).on('error', end).on('close', end)
    near.on('data', (chunk) => far.write(chunk))
    far.on('data', (chunk) => {
      const wait = held.get(near.remotePort ?? 0) ?? everyAnswerMs
      if (wait === 0) near.write(chunk)
      else setTimeout(() => near.write(chunk), wait)
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')

  return {
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    holdBack: (clientPort, milliseconds) => void held.set(clientPort, milliseconds),
    close() {
      server.close()
      for (const end of ends) end()
    },
  }
}
