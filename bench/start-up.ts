/**
 * The time of a start, as a multiple of an empty Node process. The example on the embedded store is started to READY, `settings get` to
 * its end. Then that of an import.
 *
 * @module
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { cliProgram } from '../test/support/cli.ts'
import { compiledCheckout } from '../test/support/compiled-checkout.ts'
import { startExampleServer } from '../test/support/example-server.ts'
import { middle } from './middle.ts'

const ROUNDS = 9
const IMPORT_BUDGET_MS = 150

async function took(args: string[], env: NodeJS.ProcessEnv, readyLine?: RegExp): Promise<number> {
  const begin = performance.now()
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'ignore'] })
  if (readyLine === undefined) {
    const [code]: unknown[] = await once(child, 'exit')
    if (code !== 0) throw new Error(`${args.join(' ')} exited with ${String(code)}`)
  } else for await (const chunk of child.stdout) if (readyLine.test(String(chunk))) break
  const ms = performance.now() - begin
  child.kill()
  return ms
}

const server = await startExampleServer()
const ofServer = { ...process.env, PORT: '0', MONGODB_URI: '' }
const ofCli = { ACCOUNT_FLOWS_URL: server.baseUrl, ACCOUNT_FLOWS_TOKEN: server.adminToken }
/** What the package adds to a process that has the provider already. */
const IMPORT = `
await import('oidc-provider')
const begin = performance.now()
await import(${JSON.stringify(pathToFileURL(join(compiledCheckout(), 'src/index.js')).href)})
console.log(performance.now() - begin)`
const STARTS: Record<string, () => number | Promise<number>> = {
  'node -e 0': () => took(['-e', '0'], ofCli),
  'start to READY': () => took(['--import', 'tsx/esm', 'examples/server.ts'], ofServer, /^READY /m),
  'settings get': () => took([cliProgram(), 'settings', 'get', 'smtp_tls'], ofCli),
  [`import 'oidc-account-flows' (wanted: at most ${IMPORT_BUDGET_MS} ms)`]: () =>
    Number(spawnSync(process.execPath, ['--input-type=module', '-e', IMPORT]).stdout.toString()),
}
const times = Object.entries(STARTS).map(([name, start]) => ({ name, start, all: [] as number[] }))
// In turn, so that whatever else the machine does slows all of them down.
for (let round = 0; round < ROUNDS; round += 1)
  for (const { start, all } of times) all.push(await start())
const [empty = 0] = times.map(({ all }) => middle(all))
for (const { name, all } of times) {
  const ratio = (middle(all) / empty).toFixed(1)
  console.log(`${name}: ${middle(all).toFixed(0)} ms, ${ratio} times an empty process`)
}
await server.stop()
process.exit()
