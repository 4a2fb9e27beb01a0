/** A long day of many people at one service: what they do, and what they saw of it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '../support/eventually.ts'
import { type Account, PASSWORD } from '../support/example-server.ts'
import type { MailKind } from '../../src/contract/mail-kinds.ts'
import type { ReceivedMail } from '../support/mail-server.ts'
import { createUserAgent, followWithin, type UserAgent } from '../support/user-agent.ts'
import {
  addPerson,
  emailOf,
  finishes,
  hasCode,
  isSignedIn,
  isVerified,
  opens,
  postForgot,
  postLogin,
  postReset,
  refresh,
  refreshTokenOf,
} from '../faults/people.ts'
import type { Processes } from '../faults/servers.ts'

type At = Pick<Processes, 'database' | 'baseUrl' | 'oauthUrl' | 'party' | 'mail'>

/** A browser, and an app of the same person. */
interface SignedIn {
  agent: UserAgent
  refreshToken: string
}

/** A person, and what their promises are measured by. */
export interface Resident extends Account {
  /** The one that opened the account last; behind it those of forms whose answer was lost. */
  passwords: string[]
  signedIn: SignedIn[]
  /** What a reset has signed out. */
  ended: SignedIn[]
  /** How many requests for a reset link were answered with the success page. */
  accepted: number
}

export interface Day {
  at: At
  residents: Resident[]
  /** What must not happen. */
  wrong: string[]
  /** How often each thing was done to its end. */
  counts: Record<string, number>
  /** Why things were not, and how often. */
  gaveUp: Map<string, number>
}

const HURRY_MS = 15_000
const AWAY = 'something is away'

export async function addResidents(at: At, count: number): Promise<Resident[]> {
  const verified = (index: number) => index % 3 > 0
  const people = Array.from({ length: count }, (_, index) => addPerson(at, verified(index)))
  return (await Promise.all(people)).map(({ agent: _agent, ...account }) => {
    return { ...account, passwords: [PASSWORD], signedIn: [], ended: [], accepted: 0 }
  })
}

/** Lives until `isOver`. Each thing that fails for want of a service is left, as people do, and something else is begun. */
export async function live(day: Day, person: Resident, isOver: () => boolean): Promise<void> {
  const acts = { forgets, signsIn, comesBack, asks, corrects }
  while (!isOver()) {
    const [name, act] = pick(Object.entries(acts))
    try {
      await act(day, person)
      day.counts[name] = (day.counts[name] ?? 0) + 1
    } catch (error) {
      // The service, the database or the mail server is away. What must not happen is in `wrong`.
      const why = String(error).replaceAll(/\d{4,}|person-\d+|\S*\?\S*/g, '…')
      day.gaveUp.set(why, (day.gaveUp.get(why) ?? 0) + 1)
    }
    await sleep(Math.random() * 2_000)
  }
}

/** Asks for a link, reads the mail, sets a new password; and finds out that nothing of before is signed in. */
async function forgets(day: Day, person: Resident) {
  const { at, wrong } = day
  const before = at.mail.mails.length
  await asks(day, person)
  const link = await linkAfter(day, person, 'password_reset', before)
  const password = `password ${crypto.randomUUID()}`
  // From now on it may be in force, whatever the answer is.
  person.passwords.push(password)
  const { status, mode } = await postReset(at, link, password)
  // A page that refuses has changed nothing.
  if (status === 400) person.passwords.pop()
  if (mode !== 'done') throw new Error(AWAY)
  person.passwords = [password]
  const earlier = person.signedIn.splice(0)
  person.ended.push(...earlier)
  const again = await postReset(at, link, 'the password of a second use')
  if (again.mode === 'done') wrong.push(`${person.username}: a used link worked again`)
  for (const one of earlier) await isEnded(day, person, one)
  if (!(await opens(at, person, password)))
    wrong.push(`${person.username}: the new password does not open the account`)
}

export async function isEnded({ at, wrong }: Day, { username }: Resident, one: SignedIn) {
  if ((await refresh(at, one.refreshToken)) !== undefined)
    wrong.push(`${username}: a refresh token survived a reset`)
  if (await isSignedIn(at, one)) wrong.push(`${username}: a session survived a reset`)
}

/** Asks for a link, and does not wait for its mail. */
async function asks({ at }: Day, person: Resident) {
  const { mode } = await postForgot(at, person.username)
  if (mode !== 'sent') throw new Error(AWAY)
  person.accepted += 1
}

/** A newcomer waits for a mail to a mistyped address, types the right one, and is let in by the link that comes there. */
async function corrects(day: Day) {
  const { at, wrong } = day
  const newcomer = await addPerson(at, false, true)
  const { agent, username, email: mistyped } = newcomer
  const before = at.mail.mails.length
  const { answer } = await postLogin(at, newcomer)
  if (answer.mode !== 'blocked') throw new Error(AWAY)
  const email = `right-${mistyped}`
  const form = { login: answer.hidden['login'] ?? '', action: 'replace_email', email }
  await agent.post(`${at.oauthUrl}/verify-email/waiting`, form)
  const link = await linkAfter(day, { email, username }, 'email_verification', before)
  if ((await emailOf(at, newcomer)) !== mistyped)
    wrong.push(`${username}: has an address that was not proven`)
  const last = await followWithin(agent, at.oauthUrl, await agent.get(link))
  if (!hasCode(last.location)) throw new Error(AWAY)
  const isRight = (await isVerified(at, newcomer)) && (await emailOf(at, newcomer)) === email
  if (!isRight) wrong.push(`${username}: is let in without the address that was proven`)
}

/** The link of the person's newest mail of a kind, after so many mails to all. */
async function linkAfter(
  { at: { mail } }: Day,
  { email, username }: Pick<Resident, 'email' | 'username'>,
  kind: MailKind,
  before: number,
): Promise<string> {
  const isIts = (one: ReceivedMail) => one.kind === kind && one.to.includes(email)
  const newest = () => mail.mails.slice(before).findLast(isIts)
  return (await eventually(`a link for ${username}`, newest, HURRY_MS)).link
}

/** Signs in to the client, by a mailed link where the address is not confirmed. */
async function signsIn(day: Day, person: Resident): Promise<void> {
  const { at, wrong } = day
  const password = knownPassword(person)
  const agent = createUserAgent()
  const before = at.mail.mails.length
  const { answer } = await postLogin(at, { agent, username: person.username }, password)
  if (answer.status === 401) return void wrong.push(`${person.username}: the password is refused`)
  if (answer.mode === 'blocked') {
    const link = await linkAfter(day, person, 'email_verification', before)
    const last = await followWithin(agent, at.oauthUrl, await agent.get(link))
    if (!hasCode(last.location)) throw new Error(AWAY)
  } else if (!answer.location || !(await finishes(at, { agent, next: answer.location })))
    throw new Error(AWAY)
}

/** Comes back to what is signed in since, or signs in with a browser and an app. */
async function comesBack({ at, wrong }: Day, person: Resident) {
  const one = person.signedIn.pop()
  if (one) {
    const next = await refresh(at, one.refreshToken)
    // A token whose successor was lost on the way ends its grant when it is used again.
    if (next !== undefined) person.signedIn.push({ ...one, refreshToken: next })
    return
  }
  const password = knownPassword(person)
  const agent = createUserAgent()
  if (!(await opens(at, person, password, agent))) wrong.push(`${person.username}: not let in`)
  person.signedIn.push({ agent, refreshToken: await refreshTokenOf(at, person, password) })
}

/** Throws while it is not known which one is in force. */
function knownPassword({ passwords: [password = PASSWORD, ...others] }: Resident): string {
  if (others.length > 0) throw new Error('a reset had no answer')
  return password
}

function pick<T>(all: readonly T[]): T {
  const one = all[Math.floor(Math.random() * all.length)]
  if (one === undefined) throw new TypeError('nothing to pick from')
  return one
}
