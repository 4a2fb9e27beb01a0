/** Both flows by this package on each of its stores, by the least that the stack can do, and by three others, in one table. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { several } from '../../test/faults/load.ts'
import { megabytesOf, startMailSink, type MailSink, type Person } from './services.ts'
import { PEERS, targets, type Ask, type Target } from './targets.ts'

const AT_ONCE = 16
const WARM_UP = 200
const PATIENCE_MS = 30_000
/** No mail in this time: no more will come. */
const SILENCE_MS = 15_000

/** Per second, but for the memory after the start and after it all. */
const COLUMNS = ['forgot', 'mailed', 'resend', 'resent', 'verify', 'reset', 'MiB', 'MiB then']
type Figures = Record<string, number>

interface BenchOptions {
  isShort: boolean
  targets: string[] | undefined
}

export async function compare({ isShort, targets: named }: BenchOptions): Promise<void> {
  const chosen = named ?? Object.keys(targets)
  if (chosen.some((name) => PEERS.includes(name))) installPeers()
  const [rounds, requests, resets] = isShort ? [1, 300, 60] : [3, 1000, 200]
  const sink = await startMailSink()
  const results = new Map<string, Figures[]>(chosen.map((name) => [name, []]))
  // In turn, so that other work of the machine falls on all of them.
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, figures] of results) {
      const target = targets[name]
      if (!target) throw new RangeError(`no such target: ${name}`)
      figures.push(await measure(name, target, sink, { requests, resets }))
    }
  }
  sink.close()
  print(results, rounds)
}

function installPeers() {
  const folder = fileURLToPath(new URL('../peers/', import.meta.url))
  if (existsSync(`${folder}node_modules/.package-lock.json`)) return
  console.log('Installing the peers into bench/peers/node_modules (350 MB).')
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  const { status } = spawnSync('npm', args, { cwd: folder, stdio: 'inherit' })
  if (status !== 0) throw new Error('the peers were not installed; --targets leaves them out')
}

/** Each figure, and in brackets how often the floor it is. */
function print(results: Map<string, Figures[]>, rounds: number) {
  const middle = (name: string, column: string) => {
    const values = (results.get(name) ?? []).flatMap((figures) => figures[column] ?? [])
    return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN
  }
  const cell = (name: string, column: string) => {
    const [value, base] = [middle(name, column), middle('floor', column)]
    if (Number.isNaN(value)) return '-'
    return value.toFixed(0) + (Number.isNaN(base) ? '' : ` (${(value / base).toFixed(2)})`)
  }
  console.log(`\nPer second, ${AT_ONCE} at once, the middle of ${rounds}; in brackets: times floor`)
  const rows = [...results.keys()].map((name) => [name, ...COLUMNS.map((each) => cell(name, each))])
  for (const row of [['', ...COLUMNS], ...rows])
    console.log(row.map((text) => text.padEnd(14)).join(''))
}

/** Starts a target on an empty database, and takes it through both flows. */
async function measure(
  name: string,
  target: Target,
  sink: MailSink,
  { requests, resets }: { requests: number; resets: number },
): Promise<Figures> {
  const verified = peopleOf('verified', requests + WARM_UP)
  const unverified = peopleOf('unverified', requests + WARM_UP)
  sink.links.clear()
  const service = await target.start([...verified, ...unverified], sink.port)
  const linkOf = ({ email }: Person) => sink.links.get(email) ?? ''
  const { forgot, resend, reset, verify } = target

  /** Asks for all, so many at once, and answers how many a second worked. */
  async function rate(people: Person[], asked: (person: Person) => Ask) {
    const begin = performance.now()
    const worked = await several(people, AT_ONCE, async (each) => works(service.base, asked(each)))
    const done = worked.filter(Boolean).length
    if (done < people.length)
      console.error(`${name}: ${people.length - done} of ${people.length} did not work`)
    return done / ((performance.now() - begin) / 1000)
  }

  /** How many were answered in a second, and how many mails arrived in one, counted until the last. */
  async function mailed(all: Person[], asked: (person: Person) => Ask) {
    // What is created with the first request is created once.
    await arrivals(all.slice(0, 1), asked)
    await arrivals(all.slice(1, WARM_UP), asked)
    return arrivals(all.slice(WARM_UP), asked)
  }

  async function arrivals(people: Person[], asked: (person: Person) => Ask) {
    const [before, begin] = [sink.count, performance.now()]
    const answered = await rate(people, asked)
    const answeredAt = performance.now()
    const missing = () => people.length - (sink.count - before)
    while (missing() > 0 && performance.now() - Math.max(answeredAt, sink.lastAt) < SILENCE_MS)
      await sleep(2)
    if (missing() > 0)
      console.error(`${name}: ${missing()} of ${people.length} mails did not arrive`)
    return [answered, (sink.count - before) / ((sink.lastAt - begin) / 1000)] as const
  }

  try {
    const atStart = await megabytesOf(service)
    const [forgotten, sent] = await mailed(verified, forgot)
    const resetting = verified.slice(WARM_UP, WARM_UP + resets)
    const done = await rate(resetting, (person) => reset(linkOf(person)))
    const [again, resent] = resend ? await mailed(unverified, resend) : []
    const opened = await rate(unverified.slice(WARM_UP), (each) => verify(linkOf(each), each))
    const asked = { forgot: forgotten, mailed: sent, resend: again ?? NaN, resent: resent ?? NaN }
    const memory = { MiB: atStart, 'MiB then': await megabytesOf(service) }
    return { ...asked, verify: opened, reset: done, ...memory }
  } finally {
    await service.stop()
  }
}

function peopleOf(kind: 'verified' | 'unverified', count: number): Person[] {
  return Array.from({ length: count }, (_none, index) => {
    const username = `${kind}${String(index).padStart(8, '0')}`
    return { username, email: `${username}@bench.example`, isVerified: kind === 'verified' }
  })
}

async function works(base: string, { path, form, json, headers, worked }: Ask): Promise<boolean> {
  const body = json ? JSON.stringify(json) : form && new URLSearchParams(form)
  const answer = await fetch(new URL(path, base), {
    method: body === undefined ? 'GET' : 'POST',
    redirect: 'manual',
    signal: AbortSignal.timeout(PATIENCE_MS),
    headers: { origin: base, ...(json && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { body }),
  })
  const text = await answer.text()
  return worked ? worked(answer, text) : answer.status === 200
}
