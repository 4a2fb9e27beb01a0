/** The list of common passwords: what it adds to the memory of a process, the time to load it, and the time of a look-up. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isCommon, loadCommonPasswords } from '../src/passwords/common.ts'

const LOOK_UPS = 50_000

/** What a process keeps, without what is only waiting to be collected. */
async function held(): Promise<number> {
  for (let round = 0; round < 3; round += 1) {
    await sleep(50)
    globalThis.gc?.()
  }
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

const before = await held()
const begin = performance.now()
const { length } = await loadCommonPasswords()
const loaded = performance.now() - begin
const megabytes = ((await held()) - before) / 1e6

const passwords = Array.from({ length: LOOK_UPS }, (_none, index) => `Password number ${index}`)
const times: number[] = []
for (const password of passwords) {
  const from = performance.now()
  await isCommon(password)
  times.push(performance.now() - from)
}
times.sort((one, other) => one - other)
const at = (share: number) => `${((times[Math.floor(LOOK_UPS * share)] ?? 0) * 1000).toFixed(0)} µs`
console.log(
  `list: ${(length / 1e6).toFixed(1)} MB; memory: ${megabytes.toFixed(1)} MB (wanted: below 5); loaded in ${loaded.toFixed(0)} ms`,
)
console.log(`look-up: median ${at(0.5)}, 99 % ${at(0.99)} (wanted: below 1000 µs)`)
