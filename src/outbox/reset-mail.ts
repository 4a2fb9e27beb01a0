import { passwordDigest } from '../crypto/password.ts'
import { hashToken, newId, newToken } from '../crypto/token.ts'
import type {
  CarriedParameters,
  IdentifiedClient,
  ResetTokenStore,
  UserStore,
} from '../ports/index.ts'
import { MAIL_KINDS } from '../ports/mail-kinds.ts'
import { attemptOf, orderOf } from '../ports/request-order.ts'
import type { Settings } from '../settings/table.ts'
import { findUser, issuedNow } from '../flows/account.ts'
import type { MailFlow } from './mail-flow.ts'

export interface ResetMailPorts {
  users: UserStore
  resetTokens: ResetTokenStore
  /** Drops what does not belong to a registered client and its redirect URI, and names that client. */
  identify(carried: CarriedParameters): Promise<IdentifiedClient>
  /** Where links start: base URL and OAuth path, never anything from a request. */
  oauthUrl: string
  settings(): Settings
  now(): Date
}

/** The mail with a reset link: (none) → unused, and unused → invalidated, of section 3.1. */
export function createResetMail(ports: ResetMailPorts): MailFlow {
  const { users, resetTokens, settings, now } = ports

  return {
    findUser: (identifier) => findUser(users, identifier),

    refuses({ passwordHash, emailVerified }) {
      if (passwordHash === undefined) return 'no_password'
      return settings().resetRequiresVerifiedEmail && !emailVerified ? 'not_verified' : undefined
    },

    hasUsable: (user) => resetTokens.hasUsable(issuedNow(user), now()),

    onRequest: (job, user) => resetTokens.invalidateLive(user.id, orderOf(job), now()),

    async mint(job, { user, email }, { passwordResetExpiration: lifetimeMs }) {
      const token = newToken()
      const id = newId()
      const createdAt = now()
      const { carried, clientName } = await ports.identify(job.carried)
      const isIssued = await resetTokens.issue({
        id,
        tokenHash: hashToken(token),
        userId: user.id,
        email,
        passwordDigest: passwordDigest(user.passwordHash),
        carried,
        ...attemptOf(job),
        createdAt,
        expiresAt: new Date(createdAt.getTime() + lifetimeMs),
      })
      if (!isIssued) return 'superseded'
      const url = `${ports.oauthUrl}${MAIL_KINDS.password_reset.page}?token=${token}`
      return { url, token: { id, lifetimeMs }, clientName }
    },

    // A token is not issued after that of a later request.
    isServedLater: async () => false,

    async revoke({ token }) {
      if (token) await resetTokens.revoke({ id: token.id }, now())
    },

    abandon: (job, accountId) => resetTokens.invalidateLive(accountId, attemptOf(job), now()),
  }
}
