/**
 * The same two flows by this package, by three others, and by the least that the stack can do, in one run on one MongoDB.
 * The README beside `bench/` says how to read it.
 *
 * @module
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startMongo, stopMongo } from '../../test/support/mongod.ts'
import { middle } from '../middle.ts'
import { COLUMNS, measure, type Amount, type Figures } from './measure.ts'
import { startMailSink } from './service.ts'
import { targets } from './targets.ts'

const { values: options } = parseArgs({
  options: {
    targets: { type: 'string', default: Object.keys(targets).join() },
    users: { type: 'string', default: '5000' },
    requests: { type: 'string', default: '1000' },
    resets: { type: 'string', default: '200' },
    'at-once': { type: 'string', default: '16' },
    rounds: { type: 'string', default: '3' },
  },
})
const amount: Amount = {
  users: Number(options.users),
  requests: Number(options.requests),
  resets: Number(options.resets),
  atOnce: Number(options['at-once']),
}
if (amount.users < 2 * (amount.requests + 201))
  throw new RangeError('users must be twice the requests, and 402 more')

const PEERS = fileURLToPath(new URL('../peers/', import.meta.url))

function installPeers(): boolean {
  if (existsSync(`${PEERS}node_modules/.package-lock.json`)) return true
  console.log('Installing the peers into bench/peers/node_modules (350 MB).')
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  return spawnSync('npm', args, { cwd: PEERS, stdio: 'inherit' }).status === 0
}

/** Each figure, and in brackets how often the floor it is. */
function print(rounds: Map<string, Figures[]>) {
  const figure = (name: string, column: (typeof COLUMNS)[number]) =>
    middle((rounds.get(name) ?? []).flatMap((figures) => figures[column] ?? []))
  const cell = (name: string, column: (typeof COLUMNS)[number]) => {
    const value = figure(name, column)
    if (Number.isNaN(value)) return '-'
    const base = figure('floor-spec', column)
    return value.toFixed(0) + (Number.isNaN(base) ? '' : ` (${(value / base).toFixed(2)})`)
  }
  const rows = [...rounds.keys()].map((name) => [name, ...COLUMNS.map((each) => cell(name, each))])
  for (const row of [['', ...COLUMNS], ...rows])
    console.log(row.map((text) => text.padEnd(18)).join(''))
}

const chosen = options.targets.split(',')
const unknown = chosen.find((name) => !targets[name])
if (unknown !== undefined) throw new RangeError(`no such target: ${unknown}`)
const needsPeers = chosen.some((name) => targets[name]?.server.startsWith('peers/'))
const hasPeers = needsPeers && installPeers()
const server = await startMongo('replica set')
const sink = await startMailSink()
const results = new Map<string, Figures[]>()
// In turn, so that whatever else the machine does falls on all of them.
for (let round = 0; round < Number(options.rounds); round += 1) {
  for (const name of chosen) {
    const target = targets[name]
    if (!target || (target.server.startsWith('peers/') && !hasPeers)) continue
    const figures = await measure(name, target, server.uri, sink, amount)
    results.set(name, [...(results.get(name) ?? []), figures])
  }
}
console.log(
  `\nPer second, ${amount.atOnce} at once, the middle of ${options.rounds}; in brackets: times the floor`,
)
print(results)
sink.close()
stopMongo()
process.exit()
