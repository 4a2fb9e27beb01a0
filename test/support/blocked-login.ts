import { expect } from 'chai'
import type { AuditEvent, User, memoryUsers } from '../../src/index.ts'
import { eventually } from './eventually.ts'
import { expectPage } from './expect-page.ts'
import { PASSWORD, type Harness } from './harness.ts'
import { isIdle } from './jobs.ts'
import type { AuthorizationRequest, RelyingParty } from './relying-party.ts'
import { createUserAgent, type Answer, type UserAgent } from './user-agent.ts'

/** A login that waits for its verification link (3.2). */
export interface BlockedLogin {
  user: User
  agent: UserAgent
  party: RelyingParty
  request: AuthorizationRequest
  /** Uid of the provider's interaction. */
  interaction: string
  /** The answer to the login POST. */
  blocked: Answer
  link: string
  /** Of its mail. */
  code: string
}

export interface BlockedLoginOptions {
  user?: User
  agent?: UserAgent
  party?: RelyingParty
  /** Parameters of the authorization request. */
  extra?: Record<string, string>
  /** Changes the address that the browser is sent to. */
  send?: (request: AuthorizationRequest) => URL | Promise<URL>
}

let named = 0

export function addUnverified(harness: Harness, more: Partial<User> = {}): Promise<User> {
  named += 1
  return harness.addUser({ username: `person-${named}`, emailVerified: false, ...more })
}

export function addVerified(harness: Harness, more: Partial<User> = {}): Promise<User> {
  return addUnverified(harness, { emailVerified: true, ...more })
}

export async function blockedLogin(
  harness: Harness,
  options: BlockedLoginOptions = {},
): Promise<BlockedLogin> {
  const { agent = createUserAgent(), party = harness.party, send = ({ url }) => url } = options
  const user = options.user ?? (await addUnverified(harness))
  const begun = await party.begin(options.extra)
  const request = { ...begun, state: options.extra?.['state'] ?? begun.state }
  const before = mailsTo(harness, user)
  const page = await harness.follow(agent, await agent.get(await send(request)))
  expect(page.page).to.equal('login')
  const form = { username: user.username, password: PASSWORD }
  const blocked = await agent.post(`${harness.oauthUrl}/login`, form)
  expect([blocked.page, blocked.mode]).to.deep.equal(['verify-email', 'blocked'])
  const { link, mail } = await harness.mail.mailTo(user.email ?? '', before + 1)
  await isIdle(harness)
  const code = codeIn(mail) ?? ''
  const interaction = new URL(page.url).searchParams.get('interaction') ?? ''
  return { user, agent, party, request, interaction, blocked, link, code }
}

/** The code in the text of a mail. `undefined`: it has none. */
export function codeIn({ text }: { text?: string | undefined }): string | undefined {
  return /^\d{6}$/m.exec(text ?? '')?.[0]
}

/** Asks for a fresh link, and answers it (4.7). */
export async function resend(
  harness: Harness,
  user: User,
  carried: Record<string, string> = {},
): Promise<string> {
  const before = mailsTo(harness, user)
  const form = { username: user.username, ...carried }
  const answer = await createUserAgent().post(`${harness.oauthUrl}/resend-verification`, form)
  expect([answer.status, answer.mode]).to.deep.equal([200, 'sent'])
  const { link } = await harness.mail.mailTo(user.email ?? '', before + 1)
  await isIdle(harness)
  return link
}

export function mailsTo({ mail }: Harness, user: User): number {
  return mail.mails.filter(({ to }) => to.includes(user.email ?? '')).length
}

/** The audit events of one type and account, once there are `count` of them. */
export async function eventsOf(
  { events }: Harness,
  matches: Partial<AuditEvent>,
  count = 1,
): Promise<AuditEvent[]> {
  const isWanted = (event: AuditEvent) =>
    Object.entries(matches).every(([name, value]) => Reflect.get(event, name) === value)
  return eventually(`${count} events like ${JSON.stringify(matches)}`, () => {
    const found = events.filter(isWanted)
    return found.length >= count && found
  })
}

/** What an admin does to a user, behind the back of the flows. */
export async function changeUser(
  { db, users }: Harness,
  user: User,
  changes: Partial<Pick<User, 'email' | 'emailVerified' | 'disabled'>>,
): Promise<void> {
  if (!db) {
    const known = await users.findById(user.id)
    ;(users as ReturnType<typeof memoryUsers>).add({ ...user, ...known, ...changes })
    return
  }
  const { emailVerified, ...others } = changes
  const $set = {
    ...others,
    ...(emailVerified !== undefined && { email_verified: emailVerified }),
  }
  await db.collection<{ _id: string }>('users').updateOne({ _id: user.id }, { $set })
}

export async function isVerified({ users }: Harness, user: User): Promise<boolean> {
  return (await users.findById(user.id))?.emailVerified === true
}

/** The value of the browser's session cookie, which is the id of the session. */
export function sessionId({ oauthUrl }: Harness, agent: UserAgent): string | undefined {
  return /(?:^|; )_session=([^;]*)/.exec(agent.cookiesFor(`${oauthUrl}/auth`))?.[1]
}

/** Whether this answer gives the browser a session. */
export function setsSession({ headers }: Answer): boolean {
  return headers.getSetCookie().some((line) => /^_session=[^;]/.test(line))
}

/** Asks with `prompt=none`: the answer's parameters at the client. */
export async function silently(harness: Harness, agent: UserAgent): Promise<URLSearchParams> {
  const { url } = await harness.party.begin({ prompt: 'none' })
  return new URL((await agent.get(url)).location ?? 'none:').searchParams
}

/** The account that the browser is signed in with, as a client learns it. `undefined`: none. */
export async function accountOf(harness: Harness, agent: UserAgent): Promise<string | undefined> {
  const request = await harness.party.begin({ prompt: 'none' })
  const { location = '' } = await agent.get(request.url)
  if (!new URL(location).searchParams.has('code')) return undefined
  return (await harness.party.exchange(request, location)).claims()?.sub
}

/** One 302 to the client with code, state and iss, and nothing of the link (4.6). Answers what the code is good for. */
export async function expectResumed(
  harness: Harness,
  { user, party, request, link }: BlockedLogin,
  answer: Answer,
) {
  expect(answer.status, answer.text).to.equal(302)
  const location = new URL(answer.location ?? '')
  expect(location.href.split('?')[0]).to.equal(request.redirectUri)
  expect([...location.searchParams.keys()].toSorted()).to.deep.equal(['code', 'iss', 'state'])
  expect(location.searchParams.get('state')).to.equal(request.state)
  expect(location.searchParams.get('iss')).to.equal(harness.oauthUrl)
  expect(location.href).to.not.include(new URL(link).searchParams.get('token'))
  expect(await isVerified(harness, user)).to.equal(true)
  const tokens = await party.exchange(request, location.href)
  expect(tokens.claims()?.sub).to.equal(user.id)
  return tokens
}

/** The verification page in mode `expired`, and nothing else (7.2). */
export function expectExpired(answer: Answer): void {
  expectPage(answer, 400, 'verify-email', 'expired')
  expect(answer.text).to.include('/resend-verification')
  expect(answer.location).to.equal(undefined)
  expect(setsSession(answer)).to.equal(false)
}

/** Verified, and that is all: no session and no code. */
export async function expectOnlyVerified(
  harness: Harness,
  { user, agent }: Pick<BlockedLogin, 'user' | 'agent'>,
  answer: Answer,
): Promise<void> {
  expectPage(answer, 200, 'verify-email', 'verified')
  expect(answer.location).to.equal(undefined)
  expect(setsSession(answer)).to.equal(false)
  expect(sessionId(harness, agent)).to.equal(undefined)
  expect(await isVerified(harness, user)).to.equal(true)
}

/** The user is unverified, and the browser has neither a session nor a code. */
export async function expectNothingChanged(
  harness: Harness,
  { user, agent }: Pick<BlockedLogin, 'user' | 'agent'>,
  answer: Answer,
): Promise<void> {
  expect(answer.location).to.equal(undefined)
  expect(setsSession(answer)).to.equal(false)
  expect(sessionId(harness, agent)).to.equal(undefined)
  expect(await isVerified(harness, user)).to.equal(false)
}

/** The link as it was mailed still does all of its work: nothing of it was spent. */
export async function expectStillWorks(harness: Harness, login: BlockedLogin): Promise<void> {
  await expectResumed(harness, login, await login.agent.get(login.link))
}
