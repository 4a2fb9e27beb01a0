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
