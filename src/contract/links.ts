import type { CarriedParameters } from './requests.ts'

/**
 * Why a link does nothing. `unknown`: nobody was ever given it; all others are told to those alone who hold the token. `superseded`: a
 * newer one took its place. `changed`: the account changed since.
 */
export type LinkReason = 'unknown' | 'expired' | 'used' | 'superseded' | 'changed'

/** Of verification links; all of an account's live side by side. `used`: the address is verified. */
export type VerificationReason = Exclude<LinkReason, 'superseded'>

/** What a verification link carries (4.6), as the forms that act on it repeat it. */
export interface VerificationLink {
  token: string
  carried: CarriedParameters
  authorizeSig: string
}
