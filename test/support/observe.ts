import { createHash } from 'node:crypto'
import { expect } from 'chai'
import { endOf } from '../../src/store/tokens.ts'
import type { Token } from '../../src/store/index.ts'
import type { Harness } from './harness.ts'
import { isIdle, withoutJobs } from './jobs.ts'
import { eventually } from './eventually.ts'
import { tokenOf } from './person.ts'
import type { Answer } from './user-agent.ts'

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** The stored record of a link that could still be used. */
export async function usableRecord(h: Harness, link: string): Promise<Token | undefined> {
  const token = await h.store.resetTokens.find(sha256(tokenOf(link)))
  return token && !endOf(token, new Date()) ? token : undefined
}

/** All that two answers could differ in; the date is masked. */
export function shapeOf({ status, headers, text }: Answer) {
  return { status, headers: [...headers].filter(([name]) => name !== 'date'), text }
}

interface Asked {
  answer: Answer
  /** Why no mail was sent; for the audit log alone. `undefined`: one was. */
  reason: string | undefined
}

let asked = 0

/** Asks for a reset link, and waits until nothing more comes of it. */
export const ask = (h: Harness, identifier: string, parameters: Record<string, string> = {}) =>
  decided(h, (headers) => h.forgot(identifier, parameters, headers))

/** Likewise for another verification link, by name. */
export const askAgain = (h: Harness, username: string) =>
  decided(h, (headers) => h.resend(username, headers))

async function decided(h: Harness, post: (headers: object) => Promise<Answer>): Promise<Asked> {
  asked += 1
  const userAgent = `test ${asked}`
  const answer = await post({ 'user-agent': userAgent })
  const event = await eventually(`a worker decides about ${userAgent}`, () =>
    h.events.find(
      ({ type, reason, ...event }) =>
        event.userAgent === userAgent && (type.includes('_mail_') || reason !== undefined),
    ),
  )
  return { answer, reason: event.reason }
}

/** Does something that must not ask for any mail: afterwards no job is waiting, none was decided about, nothing was mailed. */
export async function withoutMail<T>(h: Harness, work: () => Promise<T>): Promise<T> {
  await isIdle(h)
  const events = h.events.length
  const result = await withoutJobs(h, work)
  expect(h.events.slice(events).map(({ type }) => type)).to.deep.equal([])
  return result
}
