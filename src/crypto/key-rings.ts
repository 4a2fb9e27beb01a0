import { createHash, randomUUID } from 'node:crypto'
import type { KeyRing } from './keys.ts'
import type { CheckedStep } from '../mail/sending.ts'
import type { KeyRings, NotedKeyRing } from '../store/index.ts'

/** So that three notes may be late or lost. */
const NOTED_WITHIN_MS = 240_000

export type OwnKeyRing = ReturnType<typeof createOwnKeyRing>

/** What the processes of one store know of each other's keys, so that a rotation goes step by step. `oauthUrl`: of this process's links. */
export function createOwnKeyRing(rings: KeyRings, keys: KeyRing, oauthUrl: string) {
  const place = createHash('sha256').update(oauthUrl).digest('base64url').slice(0, 11)
  const own: NotedKeyRing = {
    processId: `${place}.${randomUUID()}`,
    // No secret: they are also in the headers of what the keys sealed.
    keyIds: [...new Set(keys('jwe').map(({ kid }) => kid))],
  }
  return {
    note: () => rings.note(own.processId, own.keyIds),
    /** When the process ends, so that no rotation waits for it. */
    forget: () => rings.note(own.processId, []),

    /** The key ids of every process that runs, of this one too. */
    async all(): Promise<string[][]> {
      const noted = await rings.noted(NOTED_WITHIN_MS)
      const others = noted.filter(({ processId }) => processId !== own.processId)
      return [own, ...others].map(({ keyIds }) => keyIds)
    },

    /** Whether a process runs whose links lead elsewhere. */
    async isShared() {
      const noted = await rings.noted(NOTED_WITHIN_MS)
      return noted.some(({ processId: id }) => id.includes('.') && !id.startsWith(`${place}.`))
    },
  }
}

/** Whether each process accepts what every other one signs and seals, and whether a rotation may take its next step. */
export function ringsCheck(rings: readonly string[][]): CheckedStep<'keys'> {
  const all = rings.length
  const share = (those: readonly string[][]) => `in ${those.length} of ${all} processes`
  const verifies = (key: string) => `${key} ${share(rings.filter((ring) => ring.includes(key)))}`
  const signs = (key: string) => `${key} ${share(rings.filter(([first]) => first === key))}`
  const known = [...new Set(rings.flat())].toSorted()
  const signing = known.filter((key) => rings.some(([first]) => first === key))
  const partly = known.filter((key) => !rings.every((ring) => ring.includes(key)))
  const missing = signing.filter((key) => partly.includes(key))

  if (missing.length > 0) {
    const message = `A process lacks a key that another one signs with: ${missing.map(verifies).join(', ')}.`
    const advice = 'Add each of these keys at the end of the ring, in every process that lacks it.'
    return { step: 'keys', status: 'failed', message, advice }
  }
  if (partly.length > 0) {
    const message = `Every process knows the keys that sign. Of the other keys: ${partly.map(verifies).join(', ')}.`
    const advice = 'Give every process the same keys before you put one of these first.'
    return { step: 'keys', status: 'warning', message, advice }
  }
  if (signing.length > 1) {
    const message = `Every process knows all keys, but the first keys differ: ${signing.map(signs).join(', ')}.`
    const advice = 'Put the same key first in every process, then run account-flows keys rotate.'
    return { step: 'keys', status: 'warning', message, advice }
  }
  const [front, ...others] = rings[0] ?? []
  const processes = all === 1 ? 'The one process signs' : `All ${all} processes sign`
  const verified = others.length > 0 ? `, and also verify with ${others.join(', ')}` : ''
  const message = `${processes} with the key ${front}${verified}.`
  return { step: 'keys', status: 'ok', message }
}
