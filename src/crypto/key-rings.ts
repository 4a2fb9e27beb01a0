import { createHash, randomUUID } from 'node:crypto'
import type { KeyRing } from './keys.ts'
import type { CheckedStep } from '../ports/index.ts'
import type { KeyRings, NotedKeyRing } from '../records/index.ts'

/** Three notes may be late, or lost. */
const NOTED_WITHIN_MS = 240_000

export type OwnKeyRing = ReturnType<typeof createOwnKeyRing>

/**
 * What the processes that share a store tell each other of their keys, so that a rotation goes step by step.
 *
 * @param oauthUrl - where the links of this process lead.
 */
export function createOwnKeyRing(rings: KeyRings, keys: KeyRing, oauthUrl: string) {
  const place = createHash('sha256').update(oauthUrl).digest('base64url').slice(0, 11)
  const own: NotedKeyRing = {
    processId: `${place}.${randomUUID()}`,
    // They are in the headers of what the keys sealed, too.
    keyIds: [...new Set(keys('jwe').map(({ kid }) => kid))],
  }
  return {
    note: () => rings.note(own.processId, own.keyIds),
    /** The process ends: nobody waits for it. */
    forget: () => rings.note(own.processId, []),

    /** The ids of the keys of every process that runs, of this one too. */
    async all(): Promise<string[][]> {
      const noted = await rings.noted(NOTED_WITHIN_MS)
      const others = noted.filter(({ processId }) => processId !== own.processId)
      return [own, ...others].map(({ keyIds }) => keyIds)
    },

    /** Whether a process runs whose links lead elsewhere. */
    async isShared() {
      const places = (await rings.noted(NOTED_WITHIN_MS)).map(({ processId }) =>
        processId.split('.'),
      )
      return places.some(([first, ...others]) => others.length > 0 && first !== place)
    },
  }
}

/** Whether each process takes what every other one signs and seals, and whether the next step of a rotation may be taken. */
export function ringsCheck(rings: readonly string[][]): CheckedStep<'keys'> {
  const step = 'keys'
  const all = rings.length
  const count = (is: (ring: string[]) => boolean) => rings.filter(is).length
  const told = (is: (ring: string[], key: string) => boolean) => (key: string) =>
    `${key} in ${count((ring) => is(ring, key))} of ${all} processes`
  const verifies = told((ring, key) => ring.includes(key))
  const signs = told((ring, key) => ring[0] === key)
  const known = [...new Set(rings.flat())].toSorted()
  const signing = known.filter((key) => rings.some(([first]) => first === key))
  const partly = known.filter((key) => !rings.every((ring) => ring.includes(key)))
  const missing = signing.filter((key) => partly.includes(key))

  if (missing.length > 0) {
    return {
      step,
      status: 'failed',
      message: `A process lacks a key that another one signs with: ${missing.map(verifies).join(', ')}.`,
      advice: 'Add each of these keys at the end of the ring, in every process that lacks it.',
    }
  }
  if (partly.length > 0) {
    return {
      step,
      status: 'warning',
      message: `Every process knows the keys that sign. Of the other keys: ${partly.map(verifies).join(', ')}.`,
      advice: 'Give every process the same keys before you put one of these first.',
    }
  }
  if (signing.length > 1) {
    return {
      step,
      status: 'warning',
      message: `Every process knows all keys, but the first keys differ: ${signing.map(signs).join(', ')}.`,
      advice: 'Put the same key first in every process, then run account-flows keys rotate.',
    }
  }
  const [front, ...others] = rings[0] ?? []
  const processes = all === 1 ? 'The one process signs' : `All ${all} processes sign`
  const verified = others.length > 0 ? `, and also verify with ${others.join(', ')}` : ''
  return { step, status: 'ok', message: `${processes} with the key ${front}${verified}.` }
}
