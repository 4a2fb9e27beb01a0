/** The time from start to READY of the example on the embedded store, as a multiple of an empty Node process. Then that of an import. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { compiledCheckout } from '../test/support/compiled-checkout.ts'

const ROUNDS = 5
const IMPORT_ROUNDS = 9
const IMPORT_BUDGET_MS = 150

async function started(args: string[], readyLine?: RegExp): Promise<number> {
  const begin = performance.now()
  const child = spawn(process.execPath, args, {
    env: { ...process.env, PORT: '0', MONGODB_URI: '' },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  if (readyLine === undefined) await once(child, 'exit')
  else for await (const chunk of child.stdout) if (readyLine.test(String(chunk))) break
  const took = performance.now() - begin
  child.kill()
  return took
}

async function median(rounds: number, measure: () => number | Promise<number>): Promise<number> {
  const times: number[] = []
  for (let round = 0; round < rounds; round += 1) times.push(await measure())
  return times.sort((a, b) => a - b)[Math.floor(rounds / 2)] ?? 0
}

const empty = await median(ROUNDS, () => started(['-e', '0']))
const ready = await median(ROUNDS, () =>
  started(['--import', 'tsx/esm', 'examples/server.ts'], /^READY /m),
)
console.log(
  `start to READY: ${ready.toFixed(0)} ms; node -e 0: ${empty.toFixed(0)} ms; ratio ${(ready / empty).toFixed(1)}`,
)

/** What the package adds to a process that has the provider already. */
const IMPORT = `
await import('oidc-provider')
const begin = performance.now()
await import(${JSON.stringify(pathToFileURL(join(compiledCheckout(), 'src/index.js')).href)})
console.log(performance.now() - begin)`

const imported = await median(IMPORT_ROUNDS, () =>
  Number(spawnSync(process.execPath, ['--input-type=module', '-e', IMPORT]).stdout.toString()),
)
console.log(
  `import 'oidc-account-flows': ${imported.toFixed(0)} ms (wanted: at most ${IMPORT_BUDGET_MS})`,
)
