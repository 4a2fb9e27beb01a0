import { createServer, type Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type Koa from 'koa'
import { reasonOf, StartRefused } from './environment.ts'

/** All together stay below the 10 seconds. */
const ANSWER_LIMIT_MS = 5_000
const SILENCE_LIMIT_MS = 1_000
const REST_LIMIT_MS = 3_000
const RELEASE_LIMIT_MS = 1_000
const EXIT_LIMIT_MS = 9_500

export interface CleanUp {
  /** Ends what goes on beside the requests. */
  stopWork(options: { withinMs: number }): Promise<void>
  /** Answers at once what is still in flight, because no time is left for it. */
  answerRest(): void
  /** Lets go of the database. */
  release(): Promise<void>
}

/** Before the server listens, a signal ends what was begun, and the process with 0. */
export function exitOnSignals() {
  const early = {
    work: async () => {},
    end() {
      process.off('SIGTERM', stop)
      process.off('SIGINT', stop)
    },
  }
  const stop = () => void early.work().finally(() => process.exit(0))
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  return early
}

export interface Place {
  host: string
  port: number
}

/** Resolves once the server listens. SIGTERM and SIGINT answer what is in flight, clean up, and exit with 0. */
export async function serve(app: Koa, { host, port }: Place, cleanUp: CleanUp): Promise<void> {
  let isStopping = false
  let underWay = 0
  const answer = app.callback()
  const server = createServer((req, res) => {
    // Whoever keeps a connection busy would otherwise keep it open.
    if (isStopping) res.setHeader('Connection', 'close')
    underWay += 1
    res.once('close', () => (underWay -= 1))
    void answer(req, res)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  }).catch((error: unknown) => {
    const isPort = ['EADDRINUSE', 'EACCES'].includes(Reflect.get(Object(error), 'code'))
    const variable = isPort ? `PORT ${port}` : `HOST ${host}`
    throw new StartRefused(`${variable} cannot be used: ${reasonOf(error)}`, { cause: error })
  })

  async function stop() {
    if (isStopping) return
    isStopping = true
    setTimeout(() => process.exit(0), EXIT_LIMIT_MS).unref()
    try {
      const closed = close(server, () => underWay > 0)
      await Promise.all([
        Promise.race([closed, sleep(ANSWER_LIMIT_MS)]),
        cleanUp.stopWork({ withinMs: ANSWER_LIMIT_MS }),
      ])
      cleanUp.answerRest()
      await Promise.race([closed, sleep(REST_LIMIT_MS)])
      await Promise.race([cleanUp.release(), sleep(RELEASE_LIMIT_MS)])
    } finally {
      process.exit(0)
    }
  }
  process.on('SIGTERM', () => void stop())
  process.on('SIGINT', () => void stop())
}

async function close(server: Server, isBusy: () => boolean): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  const silentUntil = performance.now() + SILENCE_LIMIT_MS
  const idle = setInterval(() => {
    // A connection that is kept alive becomes idle only once its answer is out; one that never asked anything, never.
    if (isBusy() || performance.now() < silentUntil) server.closeIdleConnections()
    else server.closeAllConnections()
  }, 50)
  await closed
  clearInterval(idle)
}
