import { setTimeout as sleep } from 'node:timers/promises'
import type { Pairs, Random } from './statistics.ts'
import { openWire, placeOf, type Relay, type Wire, type WireRequest } from './wire.ts'

/** The requests of two classes; each list is gone through again and again. */
export interface Plan {
  url: URL
  hits: WireRequest[]
  misses: WireRequest[]
  /** Of every answer. */
  status: number
}

/** How much is measured, and how. */
export interface How {
  pairs: number
  /** Requests of each class that are sent before, and not counted. */
  warmUp: number
  random: Random
  /** How many people each class has. */
  identifiers: number
  connections: number
  /** In between, to hold the answers to hits back. */
  relay?: Relay
  holdHitsMs?: number
}

const BREATH_MS = 120

/** Section A: the time of each answer, hit and miss one after the other in random order on the same connection. */
export async function measureAnswers(
  plan: Plan,
  { pairs, warmUp, random, connections, relay, holdHitsMs = 0 }: How,
): Promise<Pairs> {
  const result: Pairs = { hits: [], misses: [] }
  let next = -warmUp

  async function work(wire: Wire) {
    const timed = async (request: WireRequest, holdMs: number) => {
      relay?.holdBack(wire.localPort(), holdMs)
      return checked(await wire.ask(request), plan)
    }
    for (let index = next++; index < pairs; index = next++) {
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

  await onWires(plan, connections, relay, (wires) => Promise.all(wires.map(work)))
  return result
}

/**
 * Section B: after each answer, other requests at these distances, each on a connection of its own. It measures their times by the
 * class of the request before. The next request of a class goes out before the later ones are through: what comes of others is the same
 * for both classes.
 */
export async function measureFollowers(
  plan: Plan,
  { pairs, warmUp, random }: How,
  { lagsMs, requests }: { lagsMs: number[]; requests: WireRequest[] },
): Promise<Pairs[]> {
  const results = lagsMs.map((): Pairs => ({ hits: [], misses: [] }))
  let sent = 0

  await onWires(plan, lagsMs.length + 1, undefined, async ([main, ...others]) => {
    const free = others.map(() => Promise.resolve())

    async function follow(i: number, wire: Wire, keep: (pairs: Pairs, ms: number) => void) {
      const [before, lag, result] = [free[i], lagsMs[i] ?? 0, results[i]]
      if (lag > 0) await sleep(lag)
      await before
      sent += 1
      const milliseconds = checked(await wire.ask(nth(requests, sent)), plan)
      if (result) keep(result, milliseconds)
    }

    async function one(request: WireRequest, keep: (pairs: Pairs, ms: number) => void) {
      const breath = sleep(BREATH_MS)
      checked(await main?.ask(request), plan)
      for (const [i, wire] of others.entries()) {
        const done = follow(i, wire, keep)
        free[i] = done
        done.catch(() => {})
      }
      await breath
    }

    for (let index = -warmUp; index < pairs; index += 1) {
      const ask = (of: 'hits' | 'misses') =>
        one(nth(plan[of], index + warmUp), (result, milliseconds) => {
          if (index >= 0) result[of][index] = milliseconds
        })
      const isHitFirst = random.below(2) === 1
      await ask(isHitFirst ? 'hits' : 'misses')
      await ask(isHitFirst ? 'misses' : 'hits')
    }
    await Promise.all(free)
  })
  return results
}

async function onWires(
  { url, hits, misses }: Plan,
  count: number,
  relay: Relay | undefined,
  work: (wires: Wire[]) => Promise<unknown>,
): Promise<void> {
  // A longer body alone takes longer.
  const lengths = new Set([...hits, ...misses].map(({ bytes }) => bytes.length))
  if (lengths.size > 1) {
    throw new Error(`the requests have ${[...lengths].join(', ')} bytes; all must be of one length`)
  }
  const place = relay ?? placeOf(url)
  const wires = await Promise.all(Array.from({ length: count }, () => openWire(url, place)))
  try {
    await work(wires)
  } finally {
    for (const wire of wires) wire.close()
  }
}

function nth<T>(list: T[], index: number): T {
  const found = list[index % list.length]
  if (found === undefined) throw new TypeError('a class has no requests')
  return found
}

function checked(answer: Awaited<ReturnType<Wire['ask']>> | undefined, { status }: Plan): number {
  if (answer?.status === status) return answer.milliseconds
  throw new Error(`answered ${answer?.status} in place of ${status}: ${answer?.body.slice(0, 200)}`)
}
