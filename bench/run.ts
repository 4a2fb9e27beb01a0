/** `npm run bench`: everything, or with `--only` some of it. What else is said goes to the comparison. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const BENCHES = {
  'round-trips': 'round-trips.ts',
  'start-up': 'start-up.ts',
  'password-queue': 'password-queue.ts',
  'client-logout': 'client-logout.ts',
  blocklist: 'blocklist.ts',
  stores: 'stores.ts',
  plans: 'plans.ts',
  comparison: 'comparison/main.ts',
}

const args = process.argv.slice(2)
const at = args.indexOf('--only')
const only = at < 0 ? undefined : args.splice(at, 2)[1]?.split(',')
const unknown = only?.find((name) => !Object.hasOwn(BENCHES, name))
if (unknown !== undefined) throw new RangeError(`no such bench: ${unknown}`)
for (const [name, file] of Object.entries(BENCHES)) {
  if (only && !only.includes(name)) continue
  console.log(`\n== ${name}`)
  const path = fileURLToPath(new URL(file, import.meta.url))
  const { status } = spawnSync(
    process.execPath,
    ['--expose-gc', '--import', 'tsx/esm', path, ...(name === 'comparison' ? args : [])],
    { stdio: 'inherit' },
  )
  if (status !== 0) process.exitCode = 1
}
