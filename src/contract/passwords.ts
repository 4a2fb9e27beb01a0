import type { User } from './users.ts'

/**
 * Why a new password is not taken. `password_common`: everybody tries it first, or it was leaked. `password_personal`: it is made of
 * names of the account and the service. `password_current`: it is in force already. `password_host`: your `judgePassword` refused it.
 */
export type PasswordRefusal =
  | 'password_mismatch'
  | 'password_too_short'
  | 'password_too_long'
  | 'password_invalid'
  | 'password_common'
  | 'password_personal'
  | 'password_current'
  | 'password_host'

/** A new password that is not taken. */
export interface RefusedNewPassword {
  /** Of those that need one password only. */
  refusal: Exclude<PasswordRefusal, 'password_mismatch'>
  /** How many characters are too many. */
  excess?: number
  /** The words of your `judgePassword`, with `password_host`. */
  reason?: ReasonWords
}

/** Plain text of at most 300 characters; or one text for each language tag, such as `{ en: '…', de: '…' }`. */
export type ReasonWords = string | Readonly<Record<string, string>>

/**
 * Your own judgement of a new password. `undefined` takes it; `{ reason }` refuses it, and the form shows the reason. It has 2 seconds
 * to answer. If it throws, is late or answers anything else, nobody sets a password: the page says that it does not work for now.
 */
export type JudgePassword = (
  password: string,
  user: User,
) => { reason: ReasonWords } | undefined | Promise<{ reason: ReasonWords } | undefined>
