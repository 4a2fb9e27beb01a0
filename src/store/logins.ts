/** Logins that wait for a verification link (3.2): by whom they are finished. */
import { z } from 'zod'
import { parametersOf, type RequestParameters } from '../contract/requests.ts'
import { holds, kindOf, type RecordOf } from './kind.ts'
import type { Records } from './records.ts'
import { tableOf, type Table } from './table.ts'
import type { SeenCutoffs } from './cutoffs.ts'

/** What a login result of oidc-provider holds. */
export interface LoginResult {
  accountId: string
  acr?: string
  amr?: string[]
  remember?: boolean
  /** The second in which the login POST arrived, before the password hash was read. */
  ts: number
  /** What decides which cut-offs the login outlives. `undefined`: its second does. */
  accountFlowsSeen?: SeenCutoffs
}

/** A whole authorization request, as oidc-provider keeps it in an interaction, and the login it waits for. */
export interface CapturedRequest {
  params: Record<string, unknown>
  prompt: unknown
  trusted?: string[]
  cid?: string
  parJti?: string
  deviceCode?: string
  /** Secrets of the request, as a store gets them. */
  sealed?: string
  lastSubmission?: Record<string, unknown>
  login: LoginResult
}

/** What a wrong login would be made of is looked at; the rest the provider checks again when it resumes. */
const Captured = z.object({
  params: z.object({}),
  login: z.object({ accountId: z.string(), ts: z.number() }),
})

export const PENDING_LOGINS = kindOf({
  name: 'pending_logins',
  fields: {
    accountId: 'text',
    /** The address and the digest of the password hash that the login was checked with; it is void under others. */
    email: 'text?',
    passwordDigest: 'text',
    captured: holds<CapturedRequest>('json'),
    /** Lower-case hex SHA-256 of the cookie of the browser that logged in. `undefined`: no page waits for it. */
    browserHash: 'text?',
    createdAt: 'time',
    /** When the browser that logged in went on, which it does once. `undefined`: not yet. */
    continuedAt: 'time?',
    /** The name of the turn that has set `continuedAt`. */
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

/** Whether `isVoid` was set (`LoginChanges`). */
export const isVoid = ({ passwordDigest }: PendingLogin) => passwordDigest === ''

/** What changes of logins that wait, repeated or in any order with the same end. */
export interface LoginChanges {
  /** To a later time; never to an earlier one. */
  purgeAt?: Date
  /** Makes them logins without a password, so that nothing finishes them. Their pages still know where to lead. */
  isVoid?: true
}

/** One login that waits, or all of an account but one. */
type SomeLogins = { id: string } | { accountId: string; except?: string | undefined }

type WantedLogin =
  | { id: string }
  | { accountId: string; parameters: RequestParameters }
  | { accountId: string; browserHash: string }

/** So many are read; other limits keep an account below it. */
const MAX = 1_000

export type PendingLoginStore = ReturnType<typeof pendingLogins>

export function pendingLogins(records: Records) {
  const logins = tableOf(records, PENDING_LOGINS)
  return {
    /**
     * Saves it, or replaces the one with its id, but none that became void while it waited. Besides it, only the newest of its account
     * stay: `most` in all. Answers whether it was saved.
     */
    async save(login: PendingLogin, most: number): Promise<boolean> {
      const isSaved = await logins.save(login, (before) => !(isVoid(before) && !before.continuedAt))
      const others = (await newestOf(logins, login.accountId)).filter(({ id }) => id !== login.id)
      // Not one that began anew meanwhile.
      const end = (other: PendingLogin) =>
        logins.update(other, (now) => (now.createdAt > other.createdAt ? now : undefined))
      await Promise.all(others.slice(most - 1).map(end))
      return isSaved
    },

    /**
     * By its id. Or the account's newest one with exactly this client, redirect URI and state, absent distinct from empty. Or its newest one
     * of this browser that is neither void nor continued.
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
     * Compare and set, atomically. With a time: sets `continuedAt` if it is not set; of concurrent callers exactly one gets
     * `true`. Without a time: unsets it if the turn of this name has set it.
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
