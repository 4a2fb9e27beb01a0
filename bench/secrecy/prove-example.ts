import { contrasts, controls, followed, nothing, titleOf } from './contrasts.ts'
import { measureAnswers, measureFollowers } from './measure.ts'
import { amountOf, proveControls, proveMany, proveOne, warmUpFor, type Run } from './prove.ts'
import { startService, type Service, type Setup } from './service.ts'

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
      const control = controlOf(setup)
      if (control)
        await proveControls(run, {
          ...control,
          titled: (name) => titleOf({ name, setup }),
          isStill: isStill(control),
          plan: () => nothing(service, identifiersFor(options.pairs)),
        })
      await service.rest()
      for (const contrast of wanted) {
        if (JSON.stringify(contrast.setup) !== key) continue
        const named = { title: titleOf(contrast), isStill: isStill(contrast) }
        await proveOne(run, named, async () => {
          const plan = await contrast.plan(service, identifiersFor(options.pairs))
          const { connections } = contrast
          const pairs = await measureAnswers(plan, { ...amountOf(run), connections })
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

async function proveFollowers(run: Run, service: Service, follower: 'probe' | 'successor') {
  const { lagsMs } = followed
  const named = lagsMs.map((lag) => ({
    title: `forgot, then ${follower} after ${lag} ms`,
    isStill: true,
  }))
  await proveMany(run, named, async () => {
    const count = identifiersFor(run.options.pairs)
    const plan = await followed.plan(service, count)
    const successors = followed.followers.successor(service, count)
    const measured = await measureFollowers(plan, {
      ...amountOf(run),
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
