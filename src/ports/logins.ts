/** Logins that wait for a verification link: what is kept of the authorization request, and by whom it is finished. */
import type { CarriedParameters } from './requests.ts'
import type { SeenCutoffs } from './login-end.ts'

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

/** A login that waits for a verification link. */
export interface PendingLogin {
  id: string
  accountId: string
  /** The address and the digest of the password hash that the login was checked with; it is void under others. */
  email: string | undefined
  passwordDigest: string
  captured: CapturedRequest
  /** Lower-case hex SHA-256 of the cookie of the browser that logged in. `undefined`: no page waits for it. */
  browserHash: string | undefined
  createdAt: Date
  /** When the browser that logged in went on, which it does once. `undefined`: not yet. */
  continuedAt: Date | undefined
  /** After this time the record may be removed. */
  purgeAt: Date
}

/** Whether `isVoid` was set (`LoginChanges`). */
export const isVoid = ({ passwordDigest }: PendingLogin) => passwordDigest === ''

/** One login that waits, or all of an account but one. */
export type SomeLogins = { id: string } | { accountId: string; except?: string | undefined }

/** What changes of logins that wait, repeated or in any order with the same end. */
export interface LoginChanges {
  /** To a later time; never to an earlier one. */
  purgeAt?: Date
  /** Makes them logins without a password, so that nothing finishes them. Their pages still know where to lead. */
  isVoid?: true
}

/** `pending_logins`: logins that wait for a verification link. */
export interface PendingLoginStore {
  /**
   * Saves it, or replaces the one with its id, but none that became void while it waited. Besides it, only the newest of its account
   * stay: `most` in all.
   */
  save(login: PendingLogin, most: number): Promise<void>
  /**
   * By its id. Or the account's newest one with exactly this client, redirect URI and state, absent distinct from empty. Or its newest one
   * of this browser that is neither void nor continued.
   */
  find(
    which:
      | { id: string }
      | { accountId: string; carried: CarriedParameters }
      | { accountId: string; browserHash: string },
  ): Promise<PendingLogin | undefined>
  change(which: SomeLogins, changes: LoginChanges): Promise<void>
  /**
   * Compare and set, atomically. With a time: sets `continuedAt` if it is not set; of concurrent callers exactly one gets
   * `true`. Without a time: unsets it if the turn of this name has set it.
   */
  setTurn(id: string, turn: string, at: Date | undefined): Promise<boolean>
}
