/**
 * People at a running server: what they do in their browsers, and what it led to.
 *
 * @module
 */
import { expect } from 'chai'
import { recordsIn, ofLink, setColumn } from '../support/records.ts'
import type { Document } from 'mongodb'
import { type Account, addAccounts, forgot, PASSWORD } from '../support/example-server.ts'
import { eventually } from '../support/eventually.ts'
import { resetForm } from '../support/person.ts'
import {
  followWithin,
  createUserAgent,
  type Answer,
  type UserAgent,
} from '../support/user-agent.ts'
import type { Processes } from './servers.ts'

export interface Person extends Account {
  agent: UserAgent
}

/** A login that is right, and waits in the browser for its next step. */
export interface HeldBackLogin {
  agent: UserAgent
  /** Where its browser would go on. */
  next: string
}

interface TokenRecord {
  _id: string
  token_hash: string
  live_of?: string
  new_hash: string | null
  claimed_at: Date | null
  used_at: Date | null
  invalidated_at: Date | null
  completed_at: Date | null
}

type Place = Pick<Processes, 'database'>
type At = Pick<Processes, 'oauthUrl' | 'party'> & Place
type Browsing = Pick<Person, 'agent' | 'username'>
type Url = Pick<Processes, 'baseUrl'>

let added = 0

export async function addPerson(
  { database }: Place,
  verified = true,
  mayReplaceEmail = false,
): Promise<Person> {
  const name = `person-${(added += 1)}`
  const how = { verified, mayReplaceEmail }
  const [account] = (await addAccounts(database, name, 1, how)) as [Account]
  return { ...account, agent: createUserAgent() }
}

/** What the host has of somebody. */
async function storedUser({ database }: Place, { username }: Pick<Account, 'username'>) {
  return (await recordsIn(database, 'users', { username }))[0]
}

export async function isVerified(at: Place, account: Pick<Account, 'username'>): Promise<boolean> {
  return (await storedUser(at, account))?.['email_verified'] === true
}

export async function emailOf(at: Place, account: Pick<Account, 'username'>): Promise<string> {
  return String((await storedUser(at, account))?.['email'])
}

export async function passwordHashOf(at: Place, account: Account): Promise<string> {
  return String((await storedUser(at, account))?.['password_hash'])
}

export async function disable({ database }: Place, { username }: Account): Promise<void> {
  const disabled = { $set: { disabled: true } }
  if (database.db) await database.db.collection('users').updateOne({ username }, disabled)
  else await setColumn(database.pool, 'users', { username }, 'disabled', true)
  expect(await recordsIn(database, 'users', { username })).to.have.nested.property(
    '[0].disabled',
    true,
  )
}

/** What is stored of a reset link. */
export async function storedToken({ database }: Place, link: string): Promise<TokenRecord> {
  const [stored] = await recordsIn(database, 'password_reset_tokens', ofLink(link))
  if (!stored) throw new Error('the token is gone')
  return stored as Document as TokenRecord
}

/** Whether all of its reset is done. */
export async function isCompleted(at: Place, link: string): Promise<boolean> {
  return (await storedToken(at, link)).completed_at instanceof Date
}

/** How many events of the account the audit log has. */
export async function countEvents({ database }: Place, { id }: Account, type: string) {
  return (await recordsIn(database, 'audit_events', { type, account_id: id })).length
}

/** Opens an authorization request and posts the credentials; answers the login POST. */
export async function postLogin(at: At, person: Browsing, password = PASSWORD, extra = {}) {
  const { agent, username } = person
  const request = await at.party.begin(extra)
  const page = await followWithin(agent, at.oauthUrl, await agent.get(request.url))
  if (page.page !== 'login') throw new Error(`no login page: ${page.status} ${page.text}`)
  const answer = await agent.post(`${at.oauthUrl}/login`, { ...page.hidden, username, password })
  return { request, answer }
}

/** Whether this password signs in, in a browser of its own by default. */
export async function opens(
  at: At,
  { username }: Pick<Account, 'username'>,
  password: string,
  agent = createUserAgent(),
): Promise<boolean> {
  const { answer } = await postLogin(at, { username, agent }, password)
  if (answer.status === 401) return false
  const last = await followWithin(agent, at.oauthUrl, answer)
  if (hasCode(last.location)) return true
  throw new Error(`neither in nor out: ${last.status} ${last.page} ${last.mode}`)
}

/** Signs in elsewhere, for a refresh token that lives on its own. */
export async function refreshTokenOf(
  at: At,
  { username }: Pick<Person, 'username'>,
  password = PASSWORD,
): Promise<string> {
  const agent = createUserAgent()
  const extra = { scope: 'openid email offline_access', prompt: 'consent' }
  const { request, answer } = await postLogin(at, { username, agent }, password, extra)
  const { hidden } = await followWithin(agent, at.oauthUrl, answer)
  const form = { ...hidden, decision: 'allow' }
  const allowed = await agent.post(`${at.oauthUrl}/login/consent`, form)
  const { status, location = '' } = await followWithin(agent, at.oauthUrl, allowed)
  if (!hasCode(location)) throw new Error(`no code: ${status} ${location}`)
  const { refresh_token: token } = await at.party.exchange(request, location)
  if (token === undefined) throw new Error('no refresh token')
  return token
}

/** The refresh token that follows this one. `undefined`: it gives no tokens any more. */
export async function refresh({ oauthUrl }: At, token: string): Promise<string | undefined> {
  const form = { grant_type: 'refresh_token', client_id: 'demo', refresh_token: token }
  const { status, text } = await createUserAgent().post(`${oauthUrl}/token`, form)
  const { error, refresh_token: next } = JSON.parse(text) as Record<string, string>
  if (status === 200) return next
  if (error === 'invalid_grant') return undefined
  throw new Error(`neither good nor bad: ${status} ${text}`)
}

export async function heldBackLogin(at: At, { username }: Person): Promise<HeldBackLogin> {
  const agent = createUserAgent()
  const { answer } = await postLogin(at, { username, agent })
  if (answer.location === undefined) throw new Error(`not signed in: ${answer.status}`)
  return { agent, next: answer.location }
}

/** Whether a login that was held back still leads to a code. */
export async function finishes({ oauthUrl }: At, { agent, next }: HeldBackLogin): Promise<boolean> {
  return hasCode((await followWithin(agent, oauthUrl, await agent.get(next))).location)
}

/** Whether the session of this browser still lives, without asking the person. */
export async function isSignedIn(at: At, { agent }: Pick<Person, 'agent'>): Promise<boolean> {
  const { url } = await at.party.begin({ prompt: 'none' })
  const { location = '', status } = await agent.get(url)
  if (hasCode(location)) return true
  if (/[?&]error=(?:login|interaction)_required/.test(location)) return false
  throw new Error(`neither in nor out: ${status} ${location}`)
}

/** Until the mail that the person asked for has left, and nothing more will be done about it. */
export async function mailed({ database }: Place, { id, email }: Account, withinMs?: number) {
  const its = { account_id: id }
  const isOver = async () => {
    const events = await recordsIn(database, 'audit_events', its)
    const isSent = events.some((event) => String(event['type']).endsWith('_mail_sent'))
    return isSent && (await recordsIn(database, 'mail_outbox', its)).length === 0
  }
  await eventually(`a mail to ${email}`, isOver, withinMs)
}

/** Asks for a reset link, and has it in the first mail, once nothing more will be done about it. */
export async function linkFor(
  at: Pick<Processes, 'baseUrl' | 'mail' | 'database'>,
  account: Account,
  withinMs?: number,
): Promise<string> {
  await forgot(at, account.username)
  await mailed(at, account, withinMs)
  return (await at.mail.mailTo(account.email)).link
}

/** Whatever the answer is. */
export function postForgot({ baseUrl }: Url, identifier: string): Promise<Answer> {
  return createUserAgent().post(`${baseUrl}/oauth2/forgot-password`, { identifier })
}

/** Whatever the answer is; at this process, whichever the link names. */
export function postReset({ baseUrl }: Url, link: string, password: string): Promise<Answer> {
  return createUserAgent().post(`${baseUrl}/oauth2/reset-password`, resetForm(link, password))
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

export function hasCode(location = ''): boolean {
  return URL.canParse(location) && new URL(location).searchParams.has('code')
}
