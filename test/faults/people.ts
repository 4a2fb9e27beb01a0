import { randomUUID } from 'node:crypto'
import bcrypt from 'bcrypt'
import { eventually } from '../support/eventually.ts'
import { followWithin } from '../support/relying-party.ts'
import { createUserAgent, type Answer, type UserAgent } from '../support/user-agent.ts'
import { CLIENT_ID, type KillableServer } from './servers.ts'

/**
 * People at a running server: what they do in their browsers, and what it led to.
 *
 * @module
 */

export interface Person {
  id: string
  username: string
  email: string
  agent: UserAgent
}

export interface HeldBackLogin {
  agent: UserAgent
  /** Where its browser would go on. */
  next: string
}

/** A document of the host's collection `users`. */
export interface UserDocument {
  _id: string
  username: string
  email: string
  email_verified: boolean
  password_hash: string
  password_changed_at: Date | null
  disabled: boolean
}

type At = Pick<KillableServer, 'oauthUrl' | 'party' | 'database'>

export const OLD_PASSWORD = 'the password of before'

const oldHash = bcrypt.hash(OLD_PASSWORD, 4)
let added = 0

export async function addPerson({ database }: At, emailVerified: boolean): Promise<Person> {
  added += 1
  const username = `person-${added}-of-the-tests`
  const person = { id: randomUUID(), username, email: `${username}@users.example` }
  await database.db.collection<UserDocument>('users').insertOne({
    _id: person.id,
    username,
    email: person.email,
    email_verified: emailVerified,
    password_hash: await oldHash,
    password_changed_at: null,
    disabled: false,
  })
  return { ...person, agent: createUserAgent() }
}

/** Opens an authorization request and posts the credentials; answers the login POST. */
export async function postLogin(at: At, person: Person, password = OLD_PASSWORD, extra = {}) {
  const { agent, username } = person
  const request = await at.party.begin(extra)
  const page = await followWithin(agent, at.oauthUrl, await agent.get(request.url))
  if (page.page !== 'login') throw new Error(`no login page: ${page.status} ${page.text}`)
  const answer = await agent.post(`${at.oauthUrl}/login`, { ...page.hidden, username, password })
  return { request, answer }
}

export async function signIn(at: At, person: Person, password = OLD_PASSWORD): Promise<void> {
  const { answer } = await postLogin(at, person, password)
  const { location = '', status } = await followWithin(person.agent, at.oauthUrl, answer)
  if (!hasCode(location)) throw new Error(`not signed in: ${status} ${location}`)
}

/** Whether this password signs in, in a browser of its own. */
export async function opens(at: At, person: Person, password: string): Promise<boolean> {
  const somewhere = { ...person, agent: createUserAgent() }
  const { answer } = await postLogin(at, somewhere, password)
  if (answer.status === 401) return false
  const last = await followWithin(somewhere.agent, at.oauthUrl, answer)
  if (!hasCode(last.location ?? '')) {
    throw new Error(`neither in nor out: ${last.status} ${last.page} ${last.mode}`)
  }
  return true
}

/** Signs in, for a refresh token that lives on its own. */
export async function refreshTokenOf(at: At, person: Person): Promise<string> {
  const somewhere = { ...person, agent: createUserAgent() }
  const extra = { scope: 'openid email offline_access', prompt: 'consent' }
  const { request, answer } = await postLogin(at, somewhere, OLD_PASSWORD, extra)
  const asked = await followWithin(somewhere.agent, at.oauthUrl, answer)
  const allowed = await somewhere.agent.post(`${at.oauthUrl}/login/consent`, {
    ...asked.hidden,
    decision: 'allow',
  })
  const { location = '' } = await followWithin(somewhere.agent, at.oauthUrl, allowed)
  const { refresh_token: token } = await at.party.exchange(request, location)
  if (token === undefined) throw new Error('no refresh token')
  return token
}

/** A login that is right, and waits in the browser for its next step. */
export async function heldBackLogin(at: At, person: Person): Promise<HeldBackLogin> {
  const agent = createUserAgent()
  const { answer } = await postLogin(at, { ...person, agent })
  if (answer.location === undefined) throw new Error(`not signed in: ${answer.status}`)
  return { agent, next: answer.location }
}

/** Whether the session of this browser still lives, without asking the person. */
export async function isSignedIn(at: At, { agent }: Pick<Person, 'agent'>): Promise<boolean> {
  const { url } = await at.party.begin({ prompt: 'none' })
  const { location = '', status } = await agent.get(url)
  if (hasCode(location)) return true
  if (/[?&]error=(?:login|interaction)_required/.test(location)) return false
  throw new Error(`neither in nor out: ${status} ${location}`)
}

/** The refresh token that follows this one. `undefined`: it gives no tokens any more. */
export async function refresh({ oauthUrl }: At, token: string): Promise<string | undefined> {
  const form = { grant_type: 'refresh_token', client_id: CLIENT_ID, refresh_token: token }
  const { status, text } = await createUserAgent().post(`${oauthUrl}/token`, form)
  const { error, refresh_token: next } = JSON.parse(text) as Record<string, string>
  if (status === 200) return next
  if (error === 'invalid_grant') return undefined
  throw new Error(`neither good nor bad: ${status} ${text}`)
}

/** Whether a login that was held back still leads to a code. */
export async function finishes(at: At, held: HeldBackLogin): Promise<boolean> {
  const { location = '' } = await followWithin(
    held.agent,
    at.oauthUrl,
    await held.agent.get(held.next),
  )
  return hasCode(location)
}

/** Until the mail that the person asked for has left, and nothing more will be done about it. */
export async function mailed({ database }: At, { id, email }: Person): Promise<void> {
  const events = database.db.collection('audit_events')
  const outbox = database.db.collection('mail_outbox')
  await eventually(`a mail to ${email}`, async () => {
    const sent = await events.countDocuments({ account_id: id, type: /_mail_sent$/ })
    return sent > 0 && (await outbox.countDocuments({ account_id: id })) === 0
  })
}

export function forgot({ oauthUrl }: At, { agent, username }: Person): Promise<Answer> {
  return agent.post(`${oauthUrl}/forgot-password`, { identifier: username })
}

/** `undefined`: the connection broke before there was an answer. */
export async function postReset(
  at: At,
  link: string,
  password: string,
): Promise<Answer | undefined> {
  const token = new URL(link).searchParams.get('token') ?? ''
  const form = { token, password, confirm_password: password }
  return answered(createUserAgent().post(`${at.oauthUrl}/reset-password`, form))
}

/** `undefined`: the connection broke before there was an answer. */
export async function answered<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof TypeError) return undefined
    throw error
  }
}

/** Whether a reset link opens the form. */
export async function showsForm(link: string): Promise<boolean> {
  const { status, page, mode } = await createUserAgent().get(link)
  if (page === 'reset-password' && mode === 'form') return true
  if (page === 'reset-password' && status === 400) return false
  throw new Error(`neither usable nor dead: ${status} ${page} ${mode}`)
}

export function hasCode(location: string): boolean {
  return URL.canParse(location) && new URL(location).searchParams.has('code')
}
