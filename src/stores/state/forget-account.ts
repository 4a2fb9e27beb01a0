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
  ...account: Parameters<Forgetful['forget']>
): Promise<ForgottenAccount> {
  let underWay = 0
  async function forget(part: keyof Parts) {
    const { erased, left } = await parts[part].forget(...account)
    underWay += left
    return erased
  }
  return {
    mails: await forget('outbox'),
    notMeTokens: await forget('notMeTokens'),
    resetTokens: await forget('resetTokens'),
    verificationTokens: await forget('verificationTokens'),
    invitationTokens: await forget('invitationTokens'),
    pendingLogins: await forget('pendingLogins'),
    clientLogouts: await forget('clientLogouts'),
    events: await forget('audit'),
    underWay,
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
