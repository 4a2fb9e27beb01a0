import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { freePort } from '../support/serve.ts'

/** What a balancer does: each connection goes to one of the processes that are up, whichever comes next. */
export async function startFront() {
  const ports = new Set<number>()
  let turn = 0
  const server = createServer((client) => {
    const up = [...ports]
    // Nothing listens on port 1: the connection breaks, as where no process is up.
    const process = connect(up[(turn += 1) % up.length] ?? 1, '127.0.0.1')
    client.pipe(process).pipe(client)
    client.on('error', () => {}).once('close', () => process.destroy())
    process.on('error', () => {}).once('close', () => client.destroy())
  })
  const port = await freePort()
  await once(server.listen(port, '127.0.0.1'), 'listening')
  return { url: `http://localhost:${port}`, ports, close: () => server.close() }
}
