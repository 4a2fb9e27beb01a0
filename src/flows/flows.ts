/**
 * The flows, each in the file of its section: `password-reset.ts` (3.1), `email-verification.ts`, `waiting-login.ts` and `login-code.ts`
 * (3.2), `finish-password.ts` (3.3), `invitation.ts` (3.4), `password-changed.ts` (3.5), `not-me.ts` (3.6). What accounts and links mean is
 * in `account.ts` and `link.ts`. No flow knows a page, the provider, a mail server or a database.
 */
import { MAIL_KINDS, type PasswordLinkKind } from '../contract/mail-kinds.ts'
import { requestMail } from '../jobs/request.ts'
import { createEmailVerification, type VerificationParts } from './email-verification.ts'
import { createFinishPassword, type FinishParts } from './finish-password.ts'
import { createInvitation } from './invitation.ts'
import type { AskForMail } from './link.ts'
import { createCodeTries, type CodeParts } from './login-code.ts'
import { createNotMe, type NotMeParts } from './not-me.ts'
import { createPasswordLink, createPasswordReset, type LinkParts } from './password-reset.ts'
import { createWaitingLogins } from './waiting-login.ts'

export type Flows = ReturnType<typeof createFlows>

type MadeHere = 'kind' | 'tokens' | 'finish' | 'askForMail' | 'codes'

export function createFlows(
  parts: Omit<VerificationParts & FinishParts & LinkParts & CodeParts & NotMeParts, MadeHere>,
) {
  const { outbox, users, settings, clock } = parts
  const askForMail: AskForMail = (wanted) => requestMail(outbox, wanted, settings(), clock.now())
  const codes = createCodeTries(parts)

  function passwordLink(kind: PasswordLinkKind) {
    const own = { ...parts, kind, tokens: parts[MAIL_KINDS[kind].link.tokens] }
    const finish = createFinishPassword({ ...own, codes })
    return createPasswordLink({ ...own, askForMail, finish })
  }

  return {
    passwordReset: createPasswordReset(passwordLink('password_reset'), askForMail),
    invitation: createInvitation(passwordLink('invitation'), users, askForMail),
    verification: createEmailVerification({ ...parts, askForMail, codes }),
    waitingLogins: createWaitingLogins(parts),
    notMe: createNotMe(parts),
  }
}
