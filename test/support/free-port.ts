import { createServer } from 'node:net'

const EPHEMERAL_PORTS_START = 32_768

/**
 * Of this machine, where nothing listens, and which the system gives to nobody by itself: neither to another process before
 * somebody listens here, nor to an outgoing connection, so that a client which calls it again and again never talks to itself.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = EPHEMERAL_PORTS_START - 1 - Math.floor(Math.random() * 10_000)
    const probe = createServer()
    const isFree = await new Promise<boolean>((resolve) => {
      probe.once('error', () => resolve(false))
      probe.listen(port, '127.0.0.1', () => resolve(true))
    })
    if (!isFree) continue
    await new Promise((resolve) => probe.close(resolve))
    return port
  }
}
