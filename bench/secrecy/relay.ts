import { connect, createServer, type AddressInfo } from 'node:net'
import type { Place } from './wire.ts'

/** A TCP relay that holds answers back: what a leak looks like, without one in the product. */
export interface Relay extends Place {
  /** For answers on the connection from this port. */
  holdBack(clientPort: number, milliseconds: number): void
  close(): void
}

/** `everyAnswerMs`: how long an answer is held back on connections for which nothing else was said. */
export async function startRelay(target: Place, everyAnswerMs = 0): Promise<Relay> {
  const held = new Map<number, number>()
  const sockets = new Set<{ destroy(): void }>()

  const server = createServer((near) => {
    const far = connect(target)
    const end = () => {
      near.destroy()
      far.destroy()
      sockets.delete(near)
      sockets.delete(far)
    }
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', end).on('close', end)
    }
    near.on('data', (chunk) => far.write(chunk))
    far.on('data', (chunk) => {
      const wait = held.get(near.remotePort ?? 0) ?? everyAnswerMs
      if (wait === 0) near.write(chunk)
      else setTimeout(() => near.write(chunk), wait)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

  return {
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    holdBack: (clientPort, milliseconds) => void held.set(clientPort, milliseconds),
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
