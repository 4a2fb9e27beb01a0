import { measureAnswers, type Plan } from './measure.ts'
import type { Deployment } from './options.ts'
import { proveOne, warmUpFor, type Run } from './prove.ts'
import { startRelay } from './relay.ts'
import { placeOf, postRequest } from './wire.ts'

const FORMS = [
  { name: 'forgot', path: 'forgot-password', field: 'identifier' },
  { name: 'resend', path: 'resend-verification', field: 'username' },
]
/** What is surely seen also under the shipped delay. */
const HELD_BACK_MS = 30

/** Known against unknown identifiers of somebody's own deployment, with the controls through a relay. */
export async function proveDeployment(deployment: Deployment, run: Run): Promise<void> {
  const { oauthUrl, known, unknown, connections } = deployment
  const { pairs, only } = run.options

  for (const { name, path, field } of FORMS) {
    if (!name.includes(only) && !`${name}: known`.includes(only)) continue
    const url = new URL(path, oauthUrl)
    const requests = (identifiers: string[]) =>
      identifiers.map((identifier) => ({ bytes: postRequest(url, { [field]: identifier }) }))
    const planOf = (hits: string[], misses: string[]): Plan => ({
      url,
      hits: requests(hits),
      misses: requests(misses),
      status: 200,
    })
    const nobody = planOf(
      unknown.filter((_, i) => i % 2 === 0),
      unknown.filter((_, i) => i % 2 === 1),
    )
    const how = { pairs, warmUp: warmUpFor(pairs), random: run.random, connections }
    const throughRelay = async (holdHitsMs: number) => {
      const relay = await startRelay(placeOf(url))
      try {
        return await measureAnswers(nobody, { ...how, relay, holdHitsMs })
      } finally {
        relay.close()
      }
    }

    const negative = {
      title: `${name}: nobody twice`,
      control: 'negative',
      isStill: false,
    } as const
    await proveOne(run, negative, () => throughRelay(0))
    const title = `${name}: held back ${HELD_BACK_MS} ms`
    await proveOne(run, { title, control: 'positive', isStill: false }, () =>
      throughRelay(HELD_BACK_MS),
    )
    await proveOne(run, { title: `${name}: known`, isStill: false }, () =>
      measureAnswers(planOf(known, unknown), how),
    )
  }
}
