import { once } from 'node:events'
import { connect, createServer } from 'node:net'

/** What a balancer does: each connection goes to one of the processes that are up, whichever comes next. */
export async function startFront() {
  const ports = new Set<number>()
  let turn = 0
  const server = createServer((client) => {
    const up = [...ports]
    const port = up[(turn += 1) % up.length]
    // Nothing listens on port 1: the connection breaks, as where no process is up.
    const process = connect(port ?? 1, '127.0.0.1')
    client.pipe(process).pipe(client)
    client.on('error', () => {}).once('close', () => process.destroy())
    process.on('error', () => {}).once('close', () => client.destroy())
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  return { url: `http://localhost:${port}`, ports, close: () => server.close() }
}
