/** Logins that wait for a verification link (3.2), and what finishes them. */
import { z } from 'zod'
import { parametersOf, type RequestParameters } from '../contract/requests.ts'
import { holds, kindOf, type RecordOf } from './kind.ts'
import type { Records } from './records.ts'
import { tableOf, type Table } from './table.ts'
import type { SeenCutoffs } from './cutoffs.ts'

/** The contents of a login result of oidc-provider. */
export interface LoginResult {
  accountId: string
  acr?: string
  amr?: string[]
  remember?: boolean
  /** Seconds since the epoch when the login POST arrived, before the password hash was read. */
  ts: number
  /** Decides which cut-offs end the login. `undefined`: its second decides. */
  accountFlowsSeen?: SeenCutoffs
}

/** A whole authorization request, as oidc-provider keeps it in an interaction, and its waiting login. */
export interface CapturedRequest {
  params: Record<string, unknown>
  prompt: unknown
  trusted?: string[]
  cid?: string
  parJti?: string
  deviceCode?: string
  /** The secrets of the request, already sealed for the store. */
  sealed?: string
  lastSubmission?: Record<string, unknown>
  login: LoginResult
}

/** Checks only the parts that would make a wrong login. The provider checks the rest when it resumes. */
const Captured = z.object({
  params: z.object({}),
  login: z.object({ accountId: z.string(), ts: z.number() }),
})

export const PENDING_LOGINS = kindOf({
  name: 'pending_logins',
  fields: {
    accountId: 'text',
    /** The address, and the digest of the password hash, at the time of the login. If either changes, the login is void. */
    email: 'text?',
    passwordDigest: 'text',
    captured: holds<CapturedRequest>('json'),
    /** Lower-case hex SHA-256 of the cookie of the browser that logged in. `undefined`: no page waits for the login. */
    browserHash: 'text?',
    createdAt: 'time',
    /** When the browser that logged in went on, which it does once. `undefined`: not yet. */
    continuedAt: 'time?',
    /** The name of the turn that set `continuedAt`. */
    turn: 'text?',
    /** After this time the record may be removed. */
    purgeAt: 'time',
  },
  indexes: [['accountId', 'createdAt']],
  purgedAt: 'purgeAt',
  isWhole: ({ captured }) => Captured.safeParse(captured).success,
})

/** A login that waits for a verification link. */
export type PendingLogin = RecordOf<typeof PENDING_LOGINS>

/** Whether the login is void (see `LoginChanges`). */
export const isVoid = ({ passwordDigest }: PendingLogin) => passwordDigest === ''

/** Changes to waiting logins. Repeated, or in any order, they have the same result. */
export interface LoginChanges {
  /** Moves `purgeAt` to a later time, and never to an earlier one. */
  purgeAt?: Date
  /** Removes the password digest, so that nothing finishes the logins. Their pages still know where to lead. */
  isVoid?: true
}

/** One waiting login, or all of an account except one. */
type SomeLogins = { id: string } | { accountId: string; except?: string | undefined }

type WantedLogin =
  | { id: string }
  | { accountId: string; parameters: RequestParameters }
  | { accountId: string; browserHash: string }

/** How many are read; other limits keep an account below it. */
const MAX = 1_000

export type PendingLoginStore = ReturnType<typeof pendingLogins>

export function pendingLogins(records: Records) {
  const logins = tableOf(records, PENDING_LOGINS)
  return {
    /**
     * Saves the login, or replaces the one with its id. It does not replace one that became void while it waited. Of the account's logins,
     * it keeps this one and the newest others: `most` in all. Returns whether it was saved.
     */
    async save(login: PendingLogin, most: number): Promise<boolean> {
      const isSaved = await logins.save(login, (before) => !(isVoid(before) && !before.continuedAt))
      const others = (await newestOf(logins, login.accountId)).filter(({ id }) => id !== login.id)
      // A login that began anew meanwhile stays.
      const end = (other: PendingLogin) =>
        logins.update(other, (now) => (now.createdAt > other.createdAt ? now : undefined))
      await Promise.all(others.slice(most - 1).map(end))
      return isSaved
    },

    /**
     * Finds a login by its id. Or it finds the account's newest one with exactly this client, redirect URI and state; absent and empty are
     * different. Or it finds the account's newest one of this browser that is neither void nor continued.
     */
    async find(which: WantedLogin): Promise<PendingLogin | undefined> {
      if ('id' in which) return logins.getReadable(which.id)
      return (await newestOf(logins, which.accountId)).find((login) =>
        'parameters' in which
          ? isOfRequest(login, which.parameters)
          : login.browserHash === which.browserHash && !login.continuedAt && !isVoid(login),
      )
    },

    async change(which: SomeLogins, changes: LoginChanges): Promise<void> {
      const { purgeAt: asked = new Date(0) } = changes
      await logins.updateAll(await someOf(logins, which), (login) => {
        const purgeAt = asked > login.purgeAt ? asked : login.purgeAt
        return { ...login, purgeAt, ...(changes.isVoid && { passwordDigest: '' }) }
      })
    },

    /**
     * Compare and set, atomically. With a time: sets `continuedAt` if it is not set; exactly one of concurrent callers gets `true`. Without
     * a time: unsets it if the turn with this name set it.
     */
    setTurn: (id: string, turn: string, at: Date | undefined): Promise<boolean> =>
      logins.update(id, (login) => {
        if (at ? login.continuedAt : login.turn !== turn) return login
        return { ...login, continuedAt: at, turn: at && turn }
      }),
  }
}

const newestOf = (logins: Table<PendingLogin>, accountId: string) =>
  logins.find({ equal: { accountId }, by: 'createdAt', isDescending: true, limit: MAX })

async function someOf(logins: Table<PendingLogin>, which: SomeLogins) {
  if ('id' in which) return [which.id]
  return (await newestOf(logins, which.accountId)).filter(({ id }) => id !== which.except)
}

function isOfRequest({ captured }: PendingLogin, parameters: RequestParameters): boolean {
  const own = parametersOf(captured)
  return (['clientId', 'redirectUri', 'state'] as const).every(
    (name) => own[name] === parameters[name],
  )
}
