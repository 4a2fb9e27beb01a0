/** The time of `settings get` over loopback, as a multiple of an empty Node process. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cliProgram } from '../test/support/cli.ts'
import { startExampleServer } from '../test/support/example-server.ts'

const ROUNDS = 15

async function run(args: string[], env: NodeJS.ProcessEnv): Promise<number> {
  const begin = performance.now()
  const child = spawn(process.execPath, args, { env, stdio: 'ignore' })
  const [code]: unknown[] = await once(child, 'exit')
  if (code !== 0) throw new Error(`${args.join(' ')} exited with ${String(code)}`)
  return performance.now() - begin
}

const middle = (times: number[]) => times.sort((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0

const server = await startExampleServer()
const env = { ACCOUNT_FLOWS_URL: server.baseUrl, ACCOUNT_FLOWS_TOKEN: server.adminToken }
const program = cliProgram()
const empty: number[] = []
const get: number[] = []
// In turn, so that whatever else the machine does slows both down.
for (let round = 0; round < ROUNDS; round += 1) {
  empty.push(await run(['-e', '0'], env))
  get.push(await run([program, 'settings', 'get', 'smtp_tls'], env))
}
console.log(
  `settings get: ${middle(get).toFixed(0)} ms; node -e 0: ${middle(empty).toFixed(0)} ms; ratio ${(middle(get) / middle(empty)).toFixed(1)}`,
)
await server.stop()
process.exit()
