import { createHash } from 'node:crypto'
import { reachCodeOf, textOf } from '../errors.ts'
import { timeout, type Clock } from '../clock.ts'
import type { Log } from '../contract/index.ts'

const PUBLIC_URL = 'https://api.pwnedpasswords.com/range/'
const PREFIX_LENGTH = 5
const ANSWER_MS = 1_000
/** Six times what the public service answers with its padding. */
const MAX_ANSWER_BYTES = 262_144
const TELL_EVERY_MS = 60_000
/** The rest of a hash, and how often its password was leaked. */
const LINE = /^([0-9A-F]{35}):(\d{1,15})$/i

/**
 * Whether the password was leaked, as a service for ranges of hashes says (k-anonymity). The service gets the first 5 digits of the SHA-1
 * hash, which hundreds of other leaked passwords have too. With padding, the length of its answer says nothing either. `fault` quotes
 * neither question nor answer.
 */
export async function isInRange(password: string, url: string | undefined, clock: Clock) {
  const hash = createHash('sha1').update(password).digest('hex').toUpperCase()
  const range = `${url ?? PUBLIC_URL}${hash.slice(0, PREFIX_LENGTH)}`
  const { signal, cancel } = timeout(clock, ANSWER_MS)
  try {
    const headers = { 'Add-Padding': 'true', 'User-Agent': 'oidc-account-flows' }
    const response = await fetch(range, { headers, redirect: 'manual', signal })
    const text = await textOf(response, response.status === 200 ? MAX_ANSWER_BYTES : 0)
    if (response.status !== 200) return { fault: `status ${response.status}` }
    if (text === undefined) return { fault: 'an answer that is too long' }
    const counts = countsIn(text)
    if (counts.size === 0) return { fault: 'no hashes in the answer' }
    return (counts.get(hash.slice(PREFIX_LENGTH)) ?? 0) > 0
  } catch (error) {
    return { fault: signal.aborted ? 'no answer in time' : reachCodeOf(error) }
  } finally {
    cancel()
  }
}

function countsIn(text: string): Map<string, number> {
  const counts = new Map<string, number>()
  for (const line of text.split('\n')) {
    const [, rest, count] = LINE.exec(line.trim()) ?? []
    if (rest !== undefined) counts.set(rest.toUpperCase(), Number(count))
  }
  return counts
}

/** `false` also if the service cannot be asked. The log says so at most once a minute. */
export function createIsLeaked(clock: Clock, log: Log) {
  let toldAt = -Infinity
  return async (password: string, url: string | undefined): Promise<boolean> => {
    const answer = await isInRange(password, url, clock)
    if (typeof answer === 'boolean') return answer
    const now = clock.now().getTime()
    if (now - toldAt >= TELL_EVERY_MS) {
      toldAt = now
      const message =
        'the range service for leaked passwords cannot be asked; the list decides alone'
      log('warn', message, { reason: answer.fault })
    }
    return false
  }
}
