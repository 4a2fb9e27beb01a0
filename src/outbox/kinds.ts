import type { MailFlows } from './mail-flow.ts'
import type { MailParts } from './parts.ts'
import { createNoticeMail } from './password-changed.ts'
import { createInvitationMail, createResetMail } from './reset-mail.ts'
import { createVerificationMail } from './verification-mail.ts'

/** What each kind of `ports/mail-kinds.ts` does. */
export function mailFlows(parts: MailParts): MailFlows {
  return {
    password_reset: createResetMail(parts),
    email_verification: createVerificationMail(parts),
    invitation: createInvitationMail(parts),
    password_changed: createNoticeMail(parts),
  }
}
