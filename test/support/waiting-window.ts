import { expect } from 'chai'
import type { PendingLogin } from '../../src/index.ts'
import type { BlockedLogin } from './blocked-login.ts'
import { expectPage } from './expect-page.ts'
import type { Harness } from './harness.ts'
import { createUserAgent, type Answer, type UserAgent } from './user-agent.ts'

/** The page that waits, and where it goes on. */
export function windowOf(
  { oauthUrl }: Harness,
  { agent, blocked }: Pick<BlockedLogin, 'agent' | 'blocked'>,
): WaitingWindow {
  const id = blocked.hidden['login'] ?? ''
  expect(id).to.match(/^[\w-]{22}$/)
  return windowNamed(oauthUrl, id, agent)
}

export interface WaitingWindow {
  id: string
  agent: UserAgent
  reload(): Promise<Answer>
  goOn(more?: Record<string, string>, headers?: Record<string, string>): Promise<Answer>
  /** The same window in another browser. */
  in(other: UserAgent): WaitingWindow
}

export function windowNamed(oauthUrl: string, id: string, agent: UserAgent): WaitingWindow {
  const url = `${oauthUrl}/verify-email`
  const query = new URLSearchParams({ login: id }).toString()
  return {
    id,
    agent,
    reload: () => agent.get(`${url}/waiting?${query}`),
    goOn: (more = {}, headers = {}) =>
      agent.post(`${url}/waiting`, { login: id, ...more }, headers),
    in: (other) => windowNamed(oauthUrl, id, other),
  }
}

/** Opens the link in a browser of its own, as on a telephone. */
export async function openElsewhere({ link }: BlockedLogin): Promise<Answer> {
  return createUserAgent().get(link)
}

export async function pendingOf(h: Harness, { id }: WaitingWindow): Promise<PendingLogin> {
  const pending = await h.store.pendingLogins.find({ id })
  if (!pending) throw new Error('nothing waits')
  return pending
}

export function expectMode(answer: Answer, status: number, mode: string): void {
  expectPage(answer, status, 'verify-email', mode)
  expect(answer.location).to.equal(undefined)
}

/** Types a code into the page that waits. */
export function typeCode(
  h: Harness,
  login: Pick<BlockedLogin, 'agent' | 'blocked'>,
  code: string,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return windowOf(h, login).goOn({ code }, headers)
}

/** The code on the page of a link that was opened elsewhere. `undefined`: it shows none. */
export function codeOn({ text }: Answer): string | undefined {
  return /data-code="(\d{6})"[^>]*>\1</.exec(text)?.[1]
}

/** Another code than that. */
export function wrongCode(right: string, guess = 0): string {
  return String((Number(right) + 1 + guess) % 1_000_000).padStart(6, '0')
}
