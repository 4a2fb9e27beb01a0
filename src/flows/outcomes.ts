import type { User } from '../ports.ts'

/** A job whose user is known: what is left is to mint, to render and to send. */
export interface ResolvedMail {
  user: User
  email: string
}

/** A link, minted. The only place where the raw token is (5.5). */
export interface MintedLink {
  url: string
  lifetimeMs: number
  /** The client that the request came from. `undefined`: none, or none that is genuine. */
  clientName: string | undefined
}

/** Why a job ends without a mail; for the audit log alone. */
export type NoMail =
  | 'unknown'
  | 'ambiguous'
  | 'disabled'
  | 'no_address'
  | 'no_password'
  | 'already_verified'
  | 'superseded'
  | 'lease_lost'
