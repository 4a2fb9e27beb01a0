import { createEmailVerification } from './email-verification.ts'
import { createInvitation } from './invitation.ts'
import { createNotMe, type NotMeParts } from './not-me.ts'
import { createPasswordReset } from './password-reset.ts'
import { createWaitingLogins } from './waiting-login.ts'

export type Flows = ReturnType<typeof createFlows>

export function createFlows(parts: NotMeParts) {
  return {
    passwordReset: createPasswordReset(parts),
    invitation: createInvitation(parts),
    verification: createEmailVerification(parts),
    waitingLogins: createWaitingLogins(parts),
    notMe: createNotMe(parts),
  }
}
