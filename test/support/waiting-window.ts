import { expect } from 'chai'
import type { PendingLogin } from '../../src/index.ts'
import type { BlockedLogin } from './blocked-login.ts'
import { expectPage } from './expect-page.ts'
import type { Harness } from './harness.ts'
import { createUserAgent, type Answer, type UserAgent } from './user-agent.ts'

/** Where the blocked page asks whether it may go on, and where it goes on. */
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
  poll(): Promise<Answer>
  /** What the poll says. */
  status(): Promise<string>
  reload(): Promise<Answer>
  goOn(more?: Record<string, string>, headers?: Record<string, string>): Promise<Answer>
  /** The same window in another browser. */
  in(other: UserAgent): WaitingWindow
}

export function windowNamed(oauthUrl: string, id: string, agent: UserAgent): WaitingWindow {
  const url = `${oauthUrl}/verify-email`
  const query = new URLSearchParams({ login: id }).toString()
  const poll = () => agent.get(`${url}/status?${query}`)
  return {
    id,
    agent,
    poll,
    async status() {
      const { status, text } = await poll()
      expect(status).to.equal(200)
      return (JSON.parse(text) as { status: string }).status
    },
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

/** The number that a window shows. `undefined`: it shows none. */
export function numberOn({ text }: Answer): string | undefined {
  const shown = /<div class="number" dir="ltr">(\d)\u00A0(\d)<\/div>/.exec(text)
  return shown ? `${shown[1]}${shown[2]}` : undefined
}

/** Another number than that, as somebody guesses. */
export function wrongNumber(right: string, guess = 0): string {
  return String(10 + ((Number(right) - 10 + 1 + guess) % 90))
}
