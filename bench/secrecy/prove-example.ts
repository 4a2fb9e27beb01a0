import { contrasts, controls, followed, nothing, titleOf } from './contrasts.ts'
import { measureAnswers, measureFollowers } from './measure.ts'
import { proveMany, proveOne, warmUpFor, type Named, type Run } from './prove.ts'
import { startRelay } from './relay.ts'
import { startService, type Service, type Setup } from './service.ts'
import { placeOf } from './wire.ts'

/** Every contrast on example servers of our own, those with the same set-up on the same server. */
export async function proveExample(run: Run): Promise<void> {
  const { options, random } = run
  const isWanted = (title: string) => title.includes(options.only)
  const wanted = contrasts.filter(
    (contrast) => (contrast.isShort || !options.isShort) && isWanted(titleOf(contrast)),
  )
  const followers = options.isShort ? [] : ['probe' as const, 'successor' as const]
  const wantedFollowers = followers.filter((follower) => isWanted(`forgot, then ${follower}`))

  const measured = [...wanted, ...wantedFollowers.map(() => followed)]
  const hasControls = measured.some(({ setup }) => controlOf(setup) !== undefined)
  const setups = new Map(
    [...(hasControls ? [] : [controls.none]), ...measured].map(({ setup }) => [
      JSON.stringify(setup),
      setup,
    ]),
  )
  for (const [key, setup] of setups) {
    const service = await startService(setup, random)
    try {
      await proveControls(run, service, setup)
      for (const contrast of wanted) {
        if (JSON.stringify(contrast.setup) !== key) continue
        const named = { title: titleOf(contrast), isStill: isStill(contrast) }
        await proveOne(run, named, async () => {
          const plan = await contrast.plan(service, identifiersFor(options.pairs))
          const { connections } = contrast
          const pairs = plan && (await measureAnswers(plan, { ...how(run), connections }))
          await service.rest()
          return pairs
        })
      }
      if (key !== JSON.stringify(followed.setup)) continue
      for (const follower of wantedFollowers) await proveFollowers(run, service, follower)
    } finally {
      await service.stop()
    }
  }
}

/** Nobody against nobody is quiet; what a relay holds back for one class is seen. */
async function proveControls(run: Run, service: Service, setup: Setup): Promise<void> {
  const control = controlOf(setup)
  if (!control) return
  const { connections, holdHitsMs } = control
  const measure = async (more: { holdHitsMs?: number } = {}) => {
    const plan = await nothing(service, identifiersFor(run.options.pairs))
    if (!plan) return undefined
    const relay = await startRelay(placeOf(service.oauthUrl))
    try {
      return await measureAnswers(plan, { ...how(run), connections, relay, ...more })
    } finally {
      relay.close()
    }
  }
  const titled = (name: string) => titleOf({ name, setup })
  const negative: Named = {
    title: titled('nobody twice'),
    control: 'negative',
    isStill: isStill(control),
  }
  const title = titled(`held back ${holdHitsMs} ms`)
  await proveOne(run, negative, () => measure())
  await proveOne(run, { title, control: 'positive', isStill: isStill(control) }, () =>
    measure({ holdHitsMs }),
  )
  await service.rest()
}

async function proveFollowers(run: Run, service: Service, follower: 'probe' | 'successor') {
  const { lagsMs } = followed
  const named = lagsMs.map((lag) => ({
    title: `forgot, then ${follower} after ${lag} ms`,
    isStill: true,
  }))
  await proveMany(run, named, async () => {
    const count = identifiersFor(run.options.pairs)
    const plan = await followed.plan(service, count)
    if (!plan) return undefined
    const successors = followed.followers.successor(service, count)
    const measured = await measureFollowers(plan, {
      ...how(run),
      lagsMs,
      follower: follower === 'probe' ? 'probe' : successors,
    })
    await service.rest()
    return lagsMs.map((lag) => measured.get(lag) ?? { hits: [], misses: [] })
  })
}

function controlOf(setup: Setup) {
  return Object.values(controls).find(
    (each) => JSON.stringify(each.setup) === JSON.stringify(setup),
  )
}

function isStill({ setup, connections }: { setup: Setup; connections: number }): boolean {
  return connections === 1 && setup.delay === 'none' && setup.database === 'near'
}

/** Each identifier is asked for about twice, so that no limit and no cache makes a difference. */
function identifiersFor(pairs: number): number {
  return Math.ceil((pairs + warmUpFor(pairs)) / 2)
}

function how({ options, random }: Run) {
  return { pairs: options.pairs, warmUp: warmUpFor(options.pairs), random }
}
