/** The time from start to READY of the example on the embedded store, as a multiple of an empty Node process. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'

const ROUNDS = 5

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

async function median(args: string[], readyLine?: RegExp): Promise<number> {
  const times: number[] = []
  for (let round = 0; round < ROUNDS; round += 1) times.push(await started(args, readyLine))
  return times.sort((a, b) => a - b)[Math.floor(ROUNDS / 2)] ?? 0
}

const empty = await median(['-e', '0'])
const ready = await median(['--import', 'tsx/esm', 'examples/server.ts'], /^READY /m)
console.log(
  `start to READY: ${ready.toFixed(0)} ms; node -e 0: ${empty.toFixed(0)} ms; ratio ${(ready / empty).toFixed(1)}`,
)
