import { once } from 'node:events'
import {
  createServer,
  type RequestListener,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http'
import { createHash } from 'node:crypto'
import { suiteOf } from './suite.ts'

/** A server that is running. */
export interface Served extends Awaited<ReturnType<typeof serve>> {}

/** Answers requests at 127.0.0.1, on a port of its own by default: once it is closed, nobody else is there. */
export async function serve(listener?: RequestListener, at?: number) {
  const server = createServer(listener)
  const port = at ?? (await freePort())
  await once(server.listen(port, '127.0.0.1'), 'listening')
  return {
    server,
    port,
    /** Without a slash at the end. */
    url: `http://127.0.0.1:${port}`,

    /** Ends also what is under way. It may be called again. */
    async close(): Promise<void> {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** One of the suite that asks for it, from its first hook to its end. */
export const suiteServed = (listener: RequestListener) =>
  suiteOf<Served>(
    () => serve(listener),
    ({ close }) => close(),
  )

/** Of those that the system gives to nobody by itself, neither to a listener nor to a connection on its way out. */
const PORTS = { from: 20_000, to: 32_700, atOnce: 50 }

const ports = portsOfThisProcess()

/** Where nothing listens until the caller does, who may take his time, or never does. */
export async function freePort(): Promise<number> {
  return (await ports.next()).value
}

/** Whoever holds the first port of fifty has the others, until his process ends. */
async function* portsOfThisProcess(): AsyncGenerator<number, never> {
  for (let first = PORTS.from; first < PORTS.to; first += PORTS.atOnce) {
    const held = await serve(undefined, first).catch(() => undefined)
    held?.server.unref()
    for (let port = first + 1; held && port < first + PORTS.atOnce; port += 1) {
      const probe = await serve(undefined, port).catch(() => undefined)
      await probe?.close()
      if (probe) yield port
    }
  }
  throw new Error(`no port from ${PORTS.from} to ${PORTS.to} is free`)
}

/** What the service does with one request, if not what an honest one does. */
export type RangeAnswer = (req: IncomingMessage, res: ServerResponse, rest: string) => unknown

export type RangeServer = Awaited<ReturnType<typeof startRangeServer>>

const sha1 = (text: string) => createHash('sha1').update(text).digest('hex').toUpperCase()

/** As long as the public service pads its answers: hashes that no password has, seen by nobody. */
export const padding = () =>
  Array.from({ length: 900 }, (_none, index) => `${sha1(`padding ${index}`).slice(5)}:0`)

/** A service for ranges of hashes that knows these passwords. The one that is asked about is in each answer. */
export async function startRangeServer(leaked: readonly string[]) {
  const hashes = leaked.map(sha1)
  const { url, close } = await serve((req, res) => {
    service.asked.push({ method: req.method, url: req.url, headers: req.headers })
    const prefix = req.url?.slice(-5)
    const rests = hashes.flatMap((hash) => (hash.startsWith(prefix ?? '') ? hash.slice(5) : []))
    if (service.answer) service.answer(req, res, rests[0] ?? '')
    else res.end([...rests.map((rest) => `${rest}:3`), ...padding()].join('\r\n'))
  })
  const service = {
    url: `${url}/range/`,
    asked: [] as Pick<IncomingMessage, 'method' | 'url' | 'headers'>[],
    /** `undefined`: it is honest. */
    answer: undefined as RangeAnswer | undefined,
    close,
  }
  return service
}
