import { createServer, type Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type Koa from 'koa'
import { reasonOf, StartRefused } from './start-refused.ts'

/** Both together leave time for the rest of the 10 seconds. */
const ANSWER_LIMIT_MS = 5_000
export const STOP_LIMIT_MS = 3_500
const EXIT_LIMIT_MS = 9_500

/** Resolves once the server listens. SIGTERM and SIGINT answer what is in flight, then `cleanUp`, then exit with 0. */
export async function serve(app: Koa, port: number, cleanUp: () => Promise<void>): Promise<void> {
  const answer = app.callback()
  const server = createServer((req, res) => void answer(req, res))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, resolve)
  }).catch((error: unknown) => {
    throw new StartRefused(`PORT ${port} cannot be used: ${reasonOf(error)}`, { cause: error })
  })

  let isStopping = false
  async function stop() {
    if (isStopping) return
    isStopping = true
    setTimeout(() => process.exit(0), EXIT_LIMIT_MS).unref()
    await close(server)
    await cleanUp()
    process.exit(0)
  }
  process.on('SIGTERM', () => void stop())
  process.on('SIGINT', () => void stop())
}

async function close(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  // A connection that is kept alive becomes idle only once its answer is out.
  const idle = setInterval(() => server.closeIdleConnections(), 50)
  await Promise.race([closed, sleep(ANSWER_LIMIT_MS)])
  clearInterval(idle)
  server.closeAllConnections()
}
