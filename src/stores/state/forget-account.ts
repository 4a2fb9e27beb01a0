import type { ForgottenAccount } from '../../ports/index.ts'
import type { TokenPart } from '../../ports/mail-kinds.ts'

/** How many records of one account were removed, and how many are left because they are under way. */
export interface Forgotten {
  erased: number
  left: number
}

/** A part of the store that has something about accounts. What it keeps has `accountHash` in place of the id. */
export interface Forgetful {
  forget(accountId: string, at: Date, accountHash: string): Promise<Forgotten>
}

type Parts = Record<
  'outbox' | 'notMeTokens' | 'pendingLogins' | 'clientLogouts' | 'audit' | TokenPart,
  Forgetful
>

/** Mails first, which become links, and events last, which tell of all others. Cut-offs stay: what was ended stays ended. */
export async function forgetAccount(
  parts: Parts,
  accountId: string,
  at: Date,
  accountHash: string,
): Promise<ForgottenAccount> {
  const forget = (part: keyof Parts) => parts[part].forget(accountId, at, accountHash)
  const mails = await forget('outbox')
  const notMeTokens = await forget('notMeTokens')
  const resetTokens = await forget('resetTokens')
  const verificationTokens = await forget('verificationTokens')
  const invitationTokens = await forget('invitationTokens')
  const pendingLogins = await forget('pendingLogins')
  const clientLogouts = await forget('clientLogouts')
  const events = await forget('audit')
  return {
    mails: mails.erased,
    resetTokens: resetTokens.erased,
    verificationTokens: verificationTokens.erased,
    invitationTokens: invitationTokens.erased,
    notMeTokens: notMeTokens.erased,
    pendingLogins: pendingLogins.erased,
    clientLogouts: clientLogouts.erased,
    events: events.erased,
    underWay: mails.left + resetTokens.left + invitationTokens.left + clientLogouts.left,
  }
}

/** In memory. */
export function forgetIn<E>(
  records: Map<string, E>,
  isOfAccount: (record: E) => boolean,
  isUnderWay: (record: E) => boolean = () => false,
): Forgotten {
  const found = [...records].filter(([, record]) => isOfAccount(record))
  const over = found.filter(([, record]) => !isUnderWay(record))
  for (const [id] of over) records.delete(id)
  return { erased: over.length, left: found.length - over.length }
}
