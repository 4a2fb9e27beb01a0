import type { MailKind } from '../contract/index.ts'
import type { MailFlow } from './mail-flow.ts'
import { noticeMail } from './password-changed.ts'
import { invitationMail, resetMail } from './reset-mail.ts'
import { verificationMail } from './verification-mail.ts'

/** What each kind of `contract/mail-kinds.ts` does. */
export const MAIL_FLOWS: Record<MailKind, MailFlow> = {
  password_reset: resetMail,
  email_verification: verificationMail,
  invitation: invitationMail,
  password_changed: noticeMail,
}
