/** Logins that wait for a verification link (3.2), and what finishes them. */
import { z } from 'zod'
import { parametersOf, type RequestParameters } from '../contract/parameters.ts'
import type { Clock } from '../clock.ts'
import { holds, kindOf, WEEK_MS, type RecordOf } from './kind.ts'
import type { Table } from './table.ts'
import type { SeenCutoffs } from './cutoffs.ts'

/** The contents of a login result of oidc-provider. */
export interface LoginResult {
  accountId: string
  acr?: string
  amr?: string[]
  remember?: boolean
  /** Seconds since the epoch when the login POST arrived, before the password hash was read. */
  ts: number
  /** Left out: the second of the login decides which cut-offs end it. */
  accountFlowsSeen?: SeenCutoffs
}

export interface OtherEmail {
  /** Random. Tokens and codes carry it. */
  id: string
  /** Sealed in the store. */
  email: string
  /** Milliseconds since the epoch. */
  typedAt: number
}

/** An authorization request, as oidc-provider keeps it in an interaction, and its waiting login. */
export interface CapturedRequest {
  params: Record<string, unknown>
  prompt: unknown
  trusted?: string[]
  cid?: string
  parJti?: string
  deviceCode?: string
  /** The secrets of the request, sealed. */
  sealed?: string
  lastSubmission?: Record<string, unknown>
  login: LoginResult
}

/** The parts that would make a wrong login. The provider checks the rest. */
const Captured = z.object({
  params: z.object({}),
  login: z.object({ accountId: z.string(), ts: z.number() }),
})

export const PENDING_LOGINS = kindOf({
  name: 'pending_logins',
  fields: {
    accountId: 'text',
    /** Of the account at the login, or since it was replaced here; like the digest of the password hash. If either changes, the login is void. */
    email: 'text?',
    passwordDigest: 'text',
    /** Another address that the user typed ("Wrong address?", 3.9). */
    other: holds<OtherEmail | undefined>('json?'),
    captured: holds<CapturedRequest>('json'),
    /** Lower-case hex SHA-256 of the cookie of the browser that logged in. */
    browserHash: 'text',
    /** Random. The code in its mails is made of it. */
    waitId: 'text',
    createdAt: 'time',
    /** When the browser that logged in went on, which it does once. */
    continuedAt: 'time?',
    /** Names the turn that set `continuedAt`. */
    turn: 'text?',
    purgeAt: 'time',
  },
  indexes: [['accountId', 'createdAt']],
  purgedAt: 'purgeAt',
  isWhole: ({ captured }) => Captured.safeParse(captured).success,
})

export type PendingLogin = RecordOf<typeof PENDING_LOGINS>

/** A login that waits outlives its link, so that a new link still finishes it. */
export const KEEP_LOGIN_MS = WEEK_MS

/** Whether its page still waits: as long as the latest link that finishes it. */
export const isInTime = ({ purgeAt }: PendingLogin, { now }: Pick<Clock, 'now'>) =>
  purgeAt.getTime() - KEEP_LOGIN_MS > now().getTime()

/** Nothing finishes a void login. Its page still knows where to lead. */
export const isVoid = ({ passwordDigest }: PendingLogin) => passwordDigest === ''

/** One waiting login, or all of an account: except one, or except those for one address. */
type SomeLogins =
  | { id: string }
  | { accountId: string; except?: string | undefined; exceptAddress?: string | undefined }

export interface LoginChange {
  purgeAt?: Date
  isVoid?: true
  email?: string | undefined
}

type WantedLogin =
  | { id: string }
  | { accountId: string; parameters: RequestParameters }
  | { accountId: string; browserHash: string }
  | { accountId: string; addressId: string }

export type PendingLoginStore = ReturnType<typeof pendingLogins>

export function pendingLogins(logins: Table<PendingLogin>) {
  return {
    /** `false`: the login with this id became void while it waited, and stays. Of the account's others the newest stay: `most` in all. */
    async save(login: PendingLogin, most: number): Promise<boolean> {
      const isSaved = await logins.save(login, (before) => renewed(before, login))
      const others = (await newestOf(logins, login.accountId)).filter(({ id }) => id !== login.id)
      // A login that began anew meanwhile stays.
      const end = (other: PendingLogin) =>
        logins.update(other, (now) => (now.createdAt > other.createdAt ? now : undefined))
      await Promise.all(others.slice(most - 1).map(end))
      return isSaved
    },

    /** Finds it by its id or its other address. Or the account's newest one of this request, or the newest that waits in this browser. */
    async find(which: WantedLogin): Promise<PendingLogin | undefined> {
      if ('id' in which) return logins.getReadable(which.id)
      return (await newestOf(logins, which.accountId)).find((login) => {
        if ('parameters' in which) return isOfRequest(login, which.parameters)
        if ('addressId' in which) return login.other?.id === which.addressId
        return login.browserHash === which.browserHash && !login.continuedAt && !isVoid(login)
      })
    },

    /** The login of the account whose other address was typed last. */
    async withOther(accountId: string): Promise<PendingLogin | undefined> {
      const found = (await newestOf(logins, accountId)).filter(({ other }) => other)
      return found.toSorted((a, b) => (b.other?.typedAt ?? 0) - (a.other?.typedAt ?? 0))[0]
    },

    /** The account's other logins lose their other address; then, atomically, this login gets one. `false`: it does not wait any more. */
    async setOther({ id, accountId }: PendingLogin, other: OtherEmail, purgeAt: Date) {
      const rest = (await newestOf(logins, accountId)).filter((login) => login.other)
      await logins.updateAll(rest, (login) => ({ ...login, other: undefined }))
      return logins.update(id, (login) =>
        login.continuedAt || isVoid(login) ? login : { ...login, other, purgeAt },
      )
    },

    /**
     * Makes logins void, moves `purgeAt` to a later time, or sets the address that the account has by now, in place of another one. Repeated,
     * or in any order, changes have the same result.
     */
    async change(
      which: SomeLogins,
      { purgeAt: asked = new Date(0), isVoid: ends, email }: LoginChange,
    ): Promise<void> {
      const some =
        'id' in which
          ? [which.id]
          : (await newestOf(logins, which.accountId)).filter(
              ({ id, email, other }) =>
                id !== which.except &&
                (other !== undefined || email === undefined || email !== which.exceptAddress),
            )
      await logins.updateAll(some, (login) => {
        const purgeAt = asked > login.purgeAt ? asked : login.purgeAt
        return {
          ...login,
          purgeAt,
          ...(ends && { passwordDigest: '' }),
          ...(email && { email, other: undefined }),
        }
      })
    },

    /** Atomic. With a time: sets `continuedAt` if it is not set. Without one: unsets it if the turn with this name set it. */
    setTurn: (id: string, turn: string, at: Date | undefined): Promise<boolean> =>
      logins.update(id, (login) => {
        if (at ? login.continuedAt : login.turn !== turn) return login
        return { ...login, continuedAt: at, turn: at && turn }
      }),
  }
}

/** A login that still waits keeps its code and its other address. Once it has gone on, or its time is over, the code is used up. */
function renewed(before: PendingLogin, login: PendingLogin): PendingLogin | undefined {
  if (isVoid(before) && !before.continuedAt) return undefined
  const waits = !before.continuedAt && isInTime(before, { now: () => login.createdAt })
  return waits ? { ...login, waitId: before.waitId, other: before.other } : login
}

/** Other limits keep an account below this many. */
const newestOf = (logins: Table<PendingLogin>, accountId: string) =>
  logins.find({ equal: { accountId }, by: 'createdAt', isDescending: true, limit: 1_000 })

/** Whether client, redirect URI and state are the same. Absent and empty are different. */
function isOfRequest({ captured }: PendingLogin, parameters: RequestParameters): boolean {
  const own = parametersOf(captured)
  return (['clientId', 'redirectUri', 'state'] as const).every(
    (name) => own[name] === parameters[name],
  )
}
