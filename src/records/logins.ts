/** Logins that wait for a verification link (3.2). */
import { z } from 'zod'
import type { CarriedParameters, PendingLogin, PendingLoginStore } from '../ports/index.ts'
import { carriedBy } from '../ports/carried-query.ts'
import { isVoid, type SomeLogins } from '../ports/logins.ts'
import { kindOf } from './kind.ts'
import type { Records } from './records.ts'
import { type Table, tableOf } from './table.ts'

interface LoginRecord extends PendingLogin {
  /** The name of the turn that has set `continuedAt`. */
  turn: string | undefined
}

/** What a wrong login would be made of is looked at; the rest the provider checks again when it resumes. */
const Captured = z.object({
  params: z.object({}),
  login: z.object({ accountId: z.string(), ts: z.number() }),
})

export const PENDING_LOGINS = kindOf<LoginRecord>({
  name: 'pending_logins',
  fields: {
    accountId: 'text',
    email: 'text?',
    passwordDigest: 'text',
    captured: 'json',
    browserHash: 'text?',
    createdAt: 'time',
    continuedAt: 'time?',
    turn: 'text?',
    purgeAt: 'time',
  },
  indexes: [['accountId', 'createdAt']],
  purgedAt: 'purgeAt',
  isWhole: ({ captured }) => Captured.safeParse(captured).success,
})

/** So many are read; other limits keep an account below it. */
const MOST = 1_000

export function pendingLogins(records: Records): PendingLoginStore {
  const logins = tableOf(records, PENDING_LOGINS)
  return {
    async save(login, most) {
      const record = { ...login, turn: undefined }
      if (!(await logins.insert(record))) {
        await logins.change(login.id, (before) => {
          const isOver = before && isVoid(before) && !before.continuedAt
          return { next: isOver ? before : record, answer: undefined }
        })
      }
      const others = (await newestOf(logins, login.accountId)).filter(({ id }) => id !== login.id)
      // Not one that began anew meanwhile.
      const ends = others.slice(most - 1).map((other) =>
        logins.change(other, (now) => {
          const isNewer = now && now.createdAt > other.createdAt
          return { next: isNewer ? now : undefined, answer: undefined }
        }),
      )
      await Promise.all(ends)
    },

    async find(which) {
      if ('id' in which) {
        const record = await logins.getReadable(which.id)
        return record && loginOf(record)
      }
      const found = (await newestOf(logins, which.accountId)).find((login) =>
        'carried' in which
          ? isOfRequest(login, which.carried)
          : login.browserHash === which.browserHash && !login.continuedAt && !isVoid(login),
      )
      return found && loginOf(found)
    },

    async change(which, changes) {
      const change = (login: LoginRecord): LoginRecord => {
        const purgeAt = later(login.purgeAt, changes.purgeAt)
        return { ...login, purgeAt, ...(changes.isVoid && { passwordDigest: '' }) }
      }
      await Promise.all(
        (await someOf(logins, which)).map((one) =>
          logins.change(one, (login) => ({ next: login && change(login), answer: undefined })),
        ),
      )
    },

    setTurn: (id, turn, at) =>
      logins.change(id, (login) => {
        if (!login || (at ? login.continuedAt : login.turn !== turn))
          return { next: login, answer: false }
        return { next: { ...login, continuedAt: at, turn: at && turn }, answer: true }
      }),
  }
}

const newestOf = (logins: Table<LoginRecord>, accountId: string) =>
  logins.find({ equal: { accountId }, by: 'createdAt', isDescending: true, limit: MOST })

async function someOf(logins: Table<LoginRecord>, which: SomeLogins) {
  if ('id' in which) return [which.id]
  return (await newestOf(logins, which.accountId)).filter(({ id }) => id !== which.except)
}

const later = (one: Date, other: Date = one) => (other > one ? other : one)

function loginOf({ turn: _turn, ...login }: LoginRecord): PendingLogin {
  return login
}

function isOfRequest({ captured }: PendingLogin, carried: CarriedParameters): boolean {
  const own = carriedBy(captured)
  return (['clientId', 'redirectUri', 'state'] as const).every(
    (name) => own[name] === carried[name],
  )
}
