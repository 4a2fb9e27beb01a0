/**
 * What the flows cost beside others and on each store, in round trips, and beside a million records. `README.md` says how to read it.
 *
 * @module
 */
import { parseArgs } from 'node:util'
import { stopMongo } from '../test/support/mongod.ts'
import { compare } from './comparison/comparison.ts'
import { showPlans } from './plans.ts'
import { countRoundTrips } from './round-trips.ts'

const BENCHES = { comparison: compare, 'round-trips': countRoundTrips, plans: showPlans }

const { values: options } = parseArgs({
  options: {
    only: { type: 'string' },
    targets: { type: 'string' },
    short: { type: 'boolean', default: false },
  },
})
const wanted = options.only?.split(',') ?? Object.keys(BENCHES)
const unknown = wanted.find((name) => !Object.hasOwn(BENCHES, name))
if (unknown !== undefined) throw new RangeError(`no such bench: ${unknown}`)
for (const [name, bench] of Object.entries(BENCHES)) {
  if (!wanted.includes(name)) continue
  console.log(`\n== ${name}`)
  await bench({ isShort: options.short, targets: options.targets?.split(',') })
}
stopMongo()
process.exit()
