import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from './random.ts'
import type { Relay } from './relay.ts'
import type { Pairs } from './statistics.ts'
import { getRequest, openWire, placeOf, type Wire, type WireRequest } from './wire.ts'

/** The requests of two classes; each list is gone through again and again. */
export interface Plan {
  url: URL
  hits: WireRequest[]
  misses: WireRequest[]
  /** Of every answer. */
  status: number
}

export interface MeasureOptions {
  pairs: number
  /** Requests of each class that are sent before, and not counted. */
  warmUp: number
  random: Random
}

const BREATH_MS = 120

/** Section A: the time of each answer, hit and miss one after the other in random order on the same connection. */
export async function measureAnswers(
  plan: Plan,
  {
    pairs,
    warmUp,
    random,
    connections,
    relay,
    holdHitsMs = 0,
  }: MeasureOptions & {
    connections: number
    /** In between, to hold the answers to hits back. */
    relay?: Relay | undefined
    holdHitsMs?: number
  },
): Promise<Pairs> {
  checkLengths(plan)
  const result: Pairs = { hits: [], misses: [] }
  let next = -warmUp

  async function work(wire: Wire) {
    const timed = async (request: WireRequest, holdMs: number) => {
      relay?.holdBack(wire.localPort(), holdMs)
      return checked(await wire.ask(request), plan).milliseconds
    }
    for (;;) {
      const index = next
      if (index >= pairs) return
      next += 1
      const hit = () => timed(nth(plan.hits, index + warmUp), holdHitsMs)
      const miss = () => timed(nth(plan.misses, index + warmUp), 0)
      const isHitFirst = random.below(2) === 1
      const first = await (isHitFirst ? hit() : miss())
      const second = await (isHitFirst ? miss() : hit())
      if (index < 0) continue
      result.hits.push(isHitFirst ? first : second)
      result.misses.push(isHitFirst ? second : first)
    }
  }

  await onWires(plan.url, connections, relay, (wires) => Promise.all(wires.map(work)))
  return result
}

/**
 * Section B: after each answer, other requests at these distances, each on a connection of its own. It measures their times by the
 * class of the request before. The next request of a class goes out before the later ones are through: what comes of others is the same
 * for both classes.
 */
export async function measureFollowers(
  plan: Plan,
  {
    pairs,
    warmUp,
    random,
    lagsMs,
    follower,
  }: MeasureOptions & {
    lagsMs: number[]
    follower: 'probe' | WireRequest[]
  },
): Promise<Map<number, Pairs>> {
  checkLengths(plan)
  const isProbe = follower === 'probe'
  const requests = isProbe ? [{ bytes: getRequest(plan.url) }] : follower
  const results = new Map<number, Pairs>(lagsMs.map((lag) => [lag, { hits: [], misses: [] }]))
  const underWay: Promise<void>[] = []
  let sent = 0

  await onWires(plan.url, lagsMs.length + 1, undefined, async ([main, ...others]) => {
    if (!main) return
    const free = others.map(() => Promise.resolve())

    async function follow(wire: Wire, lag: number, keep: (milliseconds: number) => void) {
      sent += 1
      keep(checked(await wire.ask(nth(requests, sent)), plan).milliseconds)
      return lag
    }

    async function one(request: WireRequest, keep: (lag: number) => (ms: number) => void) {
      const breath = sleep(BREATH_MS)
      checked(await main?.ask(request), plan)
      for (const [i, lag] of lagsMs.entries()) {
        const wire = others[i]
        if (!wire) continue
        const before = free[i]
        const due = lag === 0 ? Promise.resolve() : sleep(lag)
        const done = due
          .then(() => before)
          .then(() => follow(wire, lag, keep(lag)))
          .then(() => {})
        free[i] = done
        underWay.push(done)
        done.catch(() => {})
      }
      await breath
    }

    for (let index = -warmUp; index < pairs; index += 1) {
      const keepIn = (which: 'hits' | 'misses') => (lag: number) => (ms: number) => {
        if (index >= 0) (results.get(lag)?.[which] ?? [])[index] = ms
      }
      const hit = () => one(nth(plan.hits, index + warmUp), keepIn('hits'))
      const miss = () => one(nth(plan.misses, index + warmUp), keepIn('misses'))
      const isHitFirst = random.below(2) === 1
      await (isHitFirst ? hit() : miss())
      await (isHitFirst ? miss() : hit())
    }
    await Promise.all(underWay)
  })
  return results
}

async function onWires<T>(
  url: URL,
  count: number,
  relay: Relay | undefined,
  work: (wires: Wire[]) => Promise<T>,
): Promise<T> {
  const place = relay ?? placeOf(url)
  const wires = await Promise.all(Array.from({ length: count }, () => openWire(url, place)))
  try {
    return await work(wires)
  } finally {
    for (const wire of wires) wire.close()
  }
}

function nth<T>(list: T[], index: number): T {
  const found = list[index % list.length]
  if (found === undefined) throw new TypeError('a class has no requests')
  return found
}

function checked<T extends { status: number; body: string }>(
  answer: T | undefined,
  { status }: Plan,
): T {
  if (answer?.status === status) return answer
  throw new Error(`answered ${answer?.status} in place of ${status}: ${answer?.body.slice(0, 200)}`)
}

/** A longer body alone takes longer. */
function checkLengths({ hits, misses }: Plan): void {
  const lengths = new Set([...hits, ...misses].map(({ bytes }) => bytes.length))
  if (lengths.size > 1) {
    throw new Error(`the requests have ${[...lengths].join(', ')} bytes; all must be of one length`)
  }
}
