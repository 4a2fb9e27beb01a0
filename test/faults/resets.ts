/**
 * A reset by somebody who is signed in everywhere, whatever happens to it; and whether it is done or not begun.
 *
 * @module
 */
import { expect } from 'chai'
import { systemClock } from '../../src/clock.ts'
import { secondAfter } from '../../src/store/cutoffs.ts'
import { opensForm, PASSWORD } from '../support/example-server.ts'
import { eventually } from '../support/eventually.ts'
import { recordsIn } from '../support/records.ts'
import {
  addPerson,
  answered,
  countEvents,
  finishes,
  type HeldBackLogin,
  heldBackLogin,
  isSignedIn,
  linkFor,
  opens,
  type Person,
  postReset,
  refresh,
  refreshTokenOf,
  storedToken,
} from './people.ts'
import { type Fault, SETTLED_WITHIN_MS } from './rounds.ts'
import type { Processes } from './servers.ts'

export const NEW_PASSWORD = 'the password of the form'
export const RETRIED_PASSWORD = 'the password of a second try'
export const ANOTHER_PASSWORD = 'the password of somebody later'

export interface Reset {
  title: string
  at: Processes
  person: Person
  link: string
  refreshToken: string
  heldBack: HeldBackLogin
  /** Whether the form was answered with the page that says so. */
  isTold: boolean
  /** Whether a second try was. */
  isRetryTold: boolean
}

/** Up to the moment before the form is posted. */
export async function prepareReset(at: Reset['at'], title = ''): Promise<Reset> {
  const person = await addPerson(at)
  expect(await opens(at, person, PASSWORD, person.agent)).to.equal(true)
  const refreshToken = await refreshTokenOf(at, person)
  const heldBack = await heldBackLogin(at, person)
  const link = await linkFor(at, person)
  return { title, at, person, link, refreshToken, heldBack, isTold: false, isRetryTold: false }
}

/** The mail that tells the account of it. */
export async function noticeOf({ at, person, title }: Reset): Promise<void> {
  const isThere = () =>
    at.mail.mails.some(({ to, kind }) => kind === 'password_changed' && to.includes(person.email))
  await eventually(`the notice: ${title}`, isThere, SETTLED_WITHIN_MS)
}

/** Whether it was begun; tells all that is wrong with it. */
export async function judgeReset(
  round: Reset,
  wrong: (is: boolean, kind: Fault, what: string) => void,
): Promise<string> {
  const { at, person, link } = round

  const outcome = await eventually(
    `settled: ${round.title}`,
    async () => {
      if (await opensForm(link)) return 'not begun'
      if ((await storedToken(at, link)).completed_at) return 'complete'
      return undefined
    },
    SETTLED_WITHIN_MS,
  )
  if (outcome === 'not begun') {
    wrong(round.isTold || round.isRetryTold, 'half done', 'told done, and is not')
    const completed = await countEvents(at, person, 'password_reset_completed')
    wrong(completed > 0, 'half done', 'has an event')
    wrong(Boolean((await cutoffsOf(round))?.oauth_at), 'half done', 'has a cut-off')
    wrong(!(await opens(at, person, PASSWORD)), 'half done', 'the old password is gone')
    wrong(await opens(at, person, NEW_PASSWORD), 'half done', 'the new password is there')
    wrong(!(await allLives(round)), 'half done', 'signed out')
    const retry = await answered(postReset(at, link, RETRIED_PASSWORD))
    round.isRetryTold = true
    wrong(retry?.mode !== 'done', 'half done', 'the link does not work')
  }
  const password = round.isRetryTold ? RETRIED_PASSWORD : NEW_PASSWORD

  const { used_at: usedAt, ...stored } = await storedToken(at, link)
  // Logins are dated in whole seconds: those of the second of the reset end with it.
  if (usedAt) await secondAfter(systemClock, usedAt)
  const cutoffs = await cutoffsOf(round)
  const isCut = (cutoff: Date | null | undefined) => usedAt && cutoff && usedAt <= cutoff
  wrong(!isCut(cutoffs?.oauth_at), 'half done', 'OAuth sessions are not cut off')
  wrong(!isCut(cutoffs?.idp_at), 'half done', 'IdP sessions are not cut off')
  wrong(stored.new_hash !== null, 'half done', 'the new hash is still with the token')
  const events = await countEvents(at, person, 'password_reset_completed')
  wrong(events === 0, 'half done', 'no event')
  wrong(events > 1, 'double event', `${events} events`)
  wrong(await anyLives(round), 'session that came back', 'still signed in')

  const again = await answered(postReset(at, link, ANOTHER_PASSWORD))
  const isRefused = again?.status === 400 && again.mode === 'invalid'
  wrong(!isRefused, 'token used twice', `${again?.status} ${again?.mode}`)
  const tried = [PASSWORD, NEW_PASSWORD, RETRIED_PASSWORD, ANOTHER_PASSWORD]
  const working = []
  for (const each of tried) if (await opens(at, person, each)) working.push(each)
  wrong(working.join() !== password, 'half done', `opened by: ${working.join()}`)
  return outcome
}

async function cutoffsOf({ at: { database }, person: { id } }: Reset) {
  const [cutoffs] = await recordsIn(database, 'session_cutoffs', database.db ? { _id: id } : { id })
  return cutoffs as { oauth_at?: Date | null; idp_at?: Date | null } | undefined
}

/** Uses up what is used once, and keeps what comes of it. */
async function allLives(round: Reset): Promise<boolean> {
  const { at, person, refreshToken, heldBack } = round
  const next = await refresh(at, refreshToken)
  if (next === undefined) return false
  round.refreshToken = next
  return (await finishes(at, heldBack)) && (await isSignedIn(at, person))
}

async function anyLives({ at, person, refreshToken, heldBack }: Reset): Promise<boolean> {
  if ((await refresh(at, refreshToken)) !== undefined) return true
  if ((await finishes(at, heldBack)) || (await isSignedIn(at, heldBack))) return true
  return isSignedIn(at, person)
}
