/**
 * The flows, by sections of the specification. No flow knows Koa, a template, a mail server or a database.
 * - 3.1 `password-link.ts`, then 3.3 `new-password.ts`; 3.7, without a password: `account.ts`
 * - 3.2 `email-verification.ts`, `waiting-login.ts`, `login-code.ts`; 3.9 `other-address.ts`
 * - 3.4, 3.5, 3.8 `for-hosts.ts`
 * - 3.6 `not-me.ts`
 */
import type { RequestParameters, User } from '../contract/index.ts'
import { createEmailVerification } from './email-verification.ts'
import * as hosts from './for-hosts.ts'
import { createNotMe } from './not-me.ts'
import type { FlowParts } from './parts.ts'
import { createPasswordLink } from './password-link.ts'
import { requestMail } from './request-mail.ts'
import { createWaitingLogins } from './waiting-login.ts'

export type Flows = ReturnType<typeof createFlows>

export const createFlows = (parts: FlowParts) => ({
  passwordReset: createPasswordLink(parts, 'password_reset'),
  invitation: createPasswordLink(parts, 'invitation'),
  verification: createEmailVerification(parts),
  waitingLogins: createWaitingLogins(parts),
  notMe: createNotMe(parts),
  /** The methods of `AccountFlows`. A host names no requester; an admin calls `invite` below with one. */
  forHosts: {
    invite: (who: User | string, parameters?: RequestParameters) =>
      hosts.invite(parts, who, parameters),
    endSessions: hosts.endSessions.bind(undefined, parts),
    passwordChanged: hosts.passwordChanged.bind(undefined, parts),
    sendVerification: hosts.sendVerification.bind(undefined, parts),
    emailChanged: hosts.emailChanged.bind(undefined, parts),
  },
  invite: hosts.invite.bind(undefined, parts),
  requestMail: requestMail.bind(undefined, parts),
  clientsOf: parts.notifications.clientsOf,
})
