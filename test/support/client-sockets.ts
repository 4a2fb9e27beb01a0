import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'

/** Counts the client sockets of this process, from their creation until they are closed. */
export function countClientSockets(): {
  readonly open: number
  /** The most that were open at once. */
  readonly most: number
  /** As it is when the other side is gone. */
  destroyAll(): void
  stop(): void
} {
  const open = new Set<Socket>()
  let most = 0
  const add = (message: unknown) => {
    const { socket } = message as { socket: Socket }
    open.add(socket)
    most = Math.max(most, open.size)
    socket.once('close', () => open.delete(socket))
  }
  subscribe('net.client.socket', add)
  return {
    get open() {
      return open.size
    },
    get most() {
      return most
    },
    destroyAll() {
      for (const socket of open) socket.destroy()
    },
    stop: () => unsubscribe('net.client.socket', add),
  }
}
