import { measureAnswers, type Plan } from './measure.ts'
import type { Deployment } from './options.ts'
import { amountOf, proveControls, proveOne, type Run } from './prove.ts'
import { postRequest } from './wire.ts'

const FORMS = [
  { name: 'forgot', path: 'forgot-password', field: 'identifier' },
  { name: 'resend', path: 'resend-verification', field: 'username' },
]
/** What is surely seen also under the shipped delay. */
const HELD_BACK_MS = 30

/** Known against unknown identifiers of somebody's own deployment, with the controls through a relay. */
export async function proveDeployment(deployment: Deployment, run: Run): Promise<void> {
  const { oauthUrl, known, unknown, connections } = deployment
  const { only } = run.options

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
    const every = (remainder: number) => unknown.filter((_, i) => i % 2 === remainder)
    await proveControls(run, {
      titled: (what) => `${name}: ${what}`,
      isStill: false,
      connections,
      holdHitsMs: HELD_BACK_MS,
      plan: () => planOf(every(0), every(1)),
    })
    await proveOne(run, { title: `${name}: known`, isStill: false }, () =>
      measureAnswers(planOf(known, unknown), { ...amountOf(run), connections }),
    )
  }
}
