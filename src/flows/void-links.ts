import type { AccountFlowsStore, MailOutbox, User, UserStore } from '../ports/index.ts'

/** Voids all that was mailed to an account, and the logins that wait for it. A reset that was decided is finished all the same. */
export type VoidLinks = (accountId: string) => Promise<void>

/** Links have expired by it, however far behind the clock of a process is. */
const BEFORE_EVERY_CLOCK = new Date(0)

export function createVoidLinks({
  resetTokens,
  verificationTokens,
  pendingLogins,
}: Pick<AccountFlowsStore, 'resetTokens' | 'verificationTokens' | 'pendingLogins'>): VoidLinks {
  return async (userId) => {
    await pendingLogins.voidOf(userId)
    await resetTokens.revoke({ userId }, BEFORE_EVERY_CLOCK)
    await verificationTokens.revoke({ userId }, BEFORE_EVERY_CLOCK)
  }
}

/** Whether it was voided with all others of its account. */
export function isVoided({ expiresAt }: { expiresAt: Date }): boolean {
  return expiresAt.getTime() === BEFORE_EVERY_CLOCK.getTime()
}

/** Voids what is still to be mailed to the account too, also what is on its way to the mail server. */
export function createVoidEverything(
  outbox: Pick<MailOutbox, 'requestsOf' | 'supersede'>,
  voidLinks: VoidLinks,
): VoidLinks {
  return async (accountId) => {
    for (const kind of ['password_reset', 'email_verification'] as const) {
      const requests = await outbox.requestsOf(accountId, kind)
      const ids = requests.map(({ id }) => id)
      await outbox.supersede(ids, BEFORE_EVERY_CLOCK)
    }
    await voidLinks(accountId)
  }
}

/** The users as the flows see them: whoever is met disabled has no link any more, also once enabled again. */
export function usersWithLinks(users: UserStore, voidLinks: VoidLinks): UserStore {
  async function met<Found extends User | undefined>(user: Found): Promise<Found> {
    if (user?.disabled) await voidLinks(user.id)
    return user
  }

  return {
    findById: async (id) => met(await users.findById(id)),
    findByUsername: async (username) => met(await users.findByUsername(username)),
    findByVerifiedEmail: async (email) =>
      Promise.all((await users.findByVerifiedEmail(email)).map(met)),
    replacePasswordHash: (id, expected, next) => users.replacePasswordHash(id, expected, next),
    markEmailVerified: (id, email) => users.markEmailVerified(id, email),
  }
}
