/** What is kept of the authorization request of a login that waits for a verification link. */
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
