import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A server that is running. */
export interface Served {
  server: Server
  port: number
  /** Without a slash at the end. */
  url: string
  /** Ends also what is under way. It may be called again. */
  close(): Promise<void>
}

/** Answers requests at 127.0.0.1, on a free port by default. */
export async function serve(listener?: RequestListener, at = 0): Promise<Served> {
  const server = createServer(listener)
  await once(server.listen(at, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return {
    server,
    port,
    url: `http://127.0.0.1:${port}`,

    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Of those that the system gives to nobody by itself, neither to a listener nor to a connection on its way out. */
const PORTS = { from: 20_000, to: 32_700, atOnce: 50 }

const ours: number[] = []

/**
 * Where nothing listens until the caller does, who may take his time: for ports that must be known before. Whoever holds the
 * first port of fifty has the others, until his process ends.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    if (ours.length === 0) ours.push(...(await claimPorts()))
    const port = ours.shift()
    const isFree = await serve(undefined, port).then(
      ({ close }) => close().then(() => true),
      () => false,
    )
    if (port !== undefined && isFree) return port
  }
}

async function claimPorts(): Promise<number[]> {
  for (let first = PORTS.from; first < PORTS.to; first += PORTS.atOnce) {
    const held = await serve(undefined, first).catch(() => undefined)
    held?.server.unref()
    if (held) return Array.from({ length: PORTS.atOnce - 1 }, (_, index) => first + 1 + index)
  }
  throw new Error(`no port from ${PORTS.from} to ${PORTS.to} is free`)
}
