import type { MailKind } from '../ports/index.ts'
import { isMailKind } from '../ports/mail-kinds.ts'
import { WEEK_MS } from '../ports/week.ts'
import type { SecretBox } from './secret-box.ts'
import { idOf } from './token.ts'

/** A mail as its second token names it. That token can only take away. */
export interface NamedMail {
  kind: MailKind
  accountId: string
  /** Of the link in it, or of the job of a notice: no two mails have the same. */
  id: string
  /** The language of the mail. */
  locale: string
  /** Of the password that the mail tells of; `undefined`: it tells of none. */
  passwordDigest: string | undefined
  /** Where the mail went. */
  email: string
  /** Of the link in it, in milliseconds; `undefined`: it is a notice. */
  lifetimeMs: number | undefined
}

/** The same, opened. */
export interface DisownedMail extends Omit<NamedMail, 'email' | 'lifetimeMs'> {
  /** How long its token is still good, in milliseconds; more than 0. */
  msLeft: number
  /** Whether the mail went to this address. */
  wentTo(email: string | undefined): boolean
}

/** The tokens behind "This wasn't me". They are sealed, so nothing of them is stored (decision 0045). */
export interface NotMeTokens {
  /** About 450 characters: base64url, and the dots of a compact JWE. */
  seal(mail: NamedMail, now: Date): string
  /** `undefined`: we did not seal it for this, it was altered in any character, or it is too old. */
  open(token: string, now: Date): DisownedMail | undefined
}

const PURPOSE = 'this was not me'

/** A notice lives for a day in the outbox. */
const NOTICE_MS = 24 * 3_600_000

/** In this order. The address is a digest, so that the token stays short. */
type Sealed = [
  kind: string,
  accountId: string,
  id: string,
  locale: string,
  goodUntil: number,
  address: string,
  passwordDigest?: string,
]

export function createNotMeTokens(box: SecretBox): NotMeTokens {
  return {
    seal({ kind, accountId, id, locale, email, passwordDigest, lifetimeMs = NOTICE_MS }, now) {
      // As long as the record of its link is there: without it, nobody knows what the link did.
      const goodUntil = now.getTime() + lifetimeMs + WEEK_MS
      const sealed: Sealed = [kind, accountId, id, locale, goodUntil, idOf(email)]
      if (passwordDigest !== undefined) sealed.push(passwordDigest)
      return box.seal(JSON.stringify(sealed), PURPOSE)
    },

    open(token, now) {
      const plain = isCanonical(token) ? box.open(token, PURPOSE) : undefined
      if (plain === undefined) return undefined
      const sealed: Sealed = JSON.parse(plain)
      const [kind, accountId, id, locale, goodUntil, address, passwordDigest] = sealed
      const msLeft = goodUntil - now.getTime()
      if (!isMailKind(kind) || msLeft <= 0) return undefined
      const wentTo = (email: string | undefined) => email !== undefined && idOf(email) === address
      return { kind, accountId, id, locale, passwordDigest, msLeft, wentTo }
    },
  }
}

/** Of several spellings of the same bytes, one alone is ours. */
function isCanonical(token: string): boolean {
  const parts = token.split('.')
  const isPlain = (part: string) => Buffer.from(part, 'base64url').toString('base64url') === part
  return parts.length === 5 && parts.every(isPlain)
}
