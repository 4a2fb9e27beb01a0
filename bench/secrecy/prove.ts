import { forgot, nothing, planFor, resend, servers, SHORT } from './contrasts.ts'
import { judge, verdictOf, type Control } from './judge.ts'
import { measureAnswers, type How, type Plan } from './measure.ts'
import type { Deployment, Options } from './options.ts'
import type { Outcome } from './report.ts'
import { startService } from './service.ts'
import type { Pairs, Random } from './statistics.ts'
import { placeOf, startRelay } from './wire.ts'

export interface Run {
  options: Options
  random: Random
  show(outcome: Outcome): void
}

/** Every contrast on example servers of our own. The controls of the first are part of each run. */
export async function proveExample(run: Run): Promise<void> {
  const { isShort, only } = run.options
  for (const server of servers) {
    const { setup, suffix = '', holdHitsMs, connections } = server
    const isFirst = server === servers[0]
    const isWanted = (name: string) =>
      (name + suffix).includes(only) && (!isShort || (isFirst && SHORT.includes(name)))
    const wanted = Object.entries(server.contrasts).filter(([name]) => isWanted(name))
    if (wanted.length === 0 && !isFirst) continue
    const how = howOf(run, connections)
    const isStill = connections === 1
    const service = await startService(setup, run.random)
    try {
      if (holdHitsMs !== undefined)
        await proveControls(run, {
          titled: (name) => name + suffix,
          isStill,
          connections,
          holdHitsMs,
          plan: () => nothing(service, how.identifiers),
        })
      await service.rest()
      for (const [name, measure] of wanted)
        await prove(run, { isStill }, async () => {
          const measured = Object.entries(await measure(service, how))
          await service.rest()
          return measured.map(([more, pairs]) => [name + more + suffix, pairs])
        })
    } finally {
      await service.stop()
    }
  }
}

/** What is surely seen also under the shipped delay. */
const HELD_BACK_MS = 30

/** Known against unknown identifiers of another deployment, with the controls through a relay. */
export async function proveDeployment(deployment: Deployment, run: Run): Promise<void> {
  const { known, unknown, connections } = deployment
  const isStill = false
  for (const [name, form] of Object.entries({ forgot, resend })) {
    const title = `${name}: known`
    if (!title.includes(run.options.only)) continue
    const planOf = (hits: string[], misses: string[]) =>
      planFor(deployment, form, hits.map(personNamed), misses.map(personNamed))
    const every = (remainder: number) => unknown.filter((_, i) => i % 2 === remainder)
    await proveControls(run, {
      titled: (what) => `${name}: ${what}`,
      isStill,
      connections,
      holdHitsMs: HELD_BACK_MS,
      plan: () => planOf(every(0), every(1)),
    })
    const how = howOf(run, connections)
    await prove(run, { isStill }, async () => [
      [title, await measureAnswers(planOf(known, unknown), how)],
    ])
  }
}

const personNamed = (username: string) => ({ username, email: username })

interface Controls {
  titled(name: string): string
  isStill: boolean
  connections: number
  holdHitsMs: number
  /** Nobody against nobody. */
  plan(): Plan
}

/** Nobody against nobody is quiet; what a relay holds back for one class is seen. */
async function proveControls(run: Run, controls: Controls): Promise<void> {
  const { titled, isStill, connections, holdHitsMs, plan } = controls
  for (const [control, name, heldMs] of [
    ['negative', 'nobody twice', 0],
    ['positive', `held back ${holdHitsMs} ms`, holdHitsMs],
  ] as const)
    await prove(run, { control, isStill }, async () => {
      const nobody = plan()
      const relay = await startRelay(placeOf(nobody.url))
      const how = { ...howOf(run, connections), relay, holdHitsMs: heldMs }
      const pairs = await measureAnswers(nobody, how).finally(() => relay.close())
      return [[titled(name), pairs]]
    })
}

/** Measures once, and again where something was seen; `isStill`: as `judge` asks. */
async function prove(
  { random, show }: Run,
  { control, isStill }: { control?: Control; isStill: boolean },
  measure: () => Promise<[title: string, Pairs][]>,
): Promise<void> {
  const judged = async () =>
    (await measure()).map(([title, pairs]) => ({
      title,
      stage: judge(pairs, random, { isStill }),
    }))
  const first = await judged()
  const isSeen = first.some(({ stage }) => stage.complaints.length > 0)
  const second = isSeen ? await judged() : []
  for (const [i, { title, stage }] of first.entries()) {
    const again = stage.complaints.length > 0 ? second[i]?.stage : undefined
    const stages = again ? [stage, again] : [stage]
    show({ title, control, verdict: verdictOf(control, stage, again), stages })
  }
}

function howOf({ options: { pairs }, random }: Run, connections: number): How {
  const warmUp = Math.min(200, Math.ceil(pairs / 4))
  // Each identifier is asked for about twice, so that no limit and no cache makes a difference.
  const identifiers = Math.ceil((pairs + warmUp) / 2)
  return { pairs, warmUp, random, identifiers, connections }
}
