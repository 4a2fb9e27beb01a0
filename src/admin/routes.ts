import type { AdminScope } from './bearer-tokens.ts'
// Types alone: the client has no need of what the server reads with.
import type { OperationName as Name, Operations } from './operations.ts'

/**
 * Path and scope of each operation, and a field that each of its answers has. By that field the client knows our answer from that of a
 * proxy. Router, client and docs/openapi.json read this table.
 */
export const ROUTES = {
  getSettings: ['GET /settings', 'account-flows:read', 'password_reset_expiration'],
  settingsHistory: ['GET /settings/history', 'account-flows:read', 'versions'],
  putSettings: ['PUT /settings', 'account-flows:settings', 'password_reset_expiration'],
  unsetSettings: ['POST /settings/unset', 'account-flows:settings', 'password_reset_expiration'],
  testMail: ['POST /mail/test', 'account-flows:settings', 'checks'],
  previewMail: ['GET /mail/preview', 'account-flows:read', 'subject'],
  mailOutcome: ['GET /mail/outcome', 'account-flows:read', 'state'],
  runDoctor: ['POST /doctor', 'account-flows:support', 'checks'],
  userStatus: ['POST /users/status', 'account-flows:read', 'username'],
  sendReset: ['POST /users/send-reset', 'account-flows:support', 'mail_id'],
  /** The client throws `has_password` if there is nothing to invite to, and likewise for other reasons. */
  inviteUser: ['POST /users/invite', 'account-flows:support', 'mail_id'],
  sendVerification: ['POST /users/send-verification', 'account-flows:support', 'mail_id'],
  endSessions: ['POST /users/end-sessions', 'account-flows:support', undefined],
  verifyUser: ['POST /users/verify', 'account-flows:support', 'changed'],
  unverifyUser: ['POST /users/unverify', 'account-flows:support', 'changed'],
  /** Erases the records about an account; the user and its sessions stay. */
  forgetUser: ['POST /users/forget', 'account-flows:support', 'under_way'],
  listOutbox: ['GET /outbox', 'account-flows:read', 'mails'],
  /** All that is known of a mail. */
  showMail: ['GET /outbox/mail', 'account-flows:read', 'history'],
  retryMails: ['POST /outbox/retry', 'account-flows:support', 'changed'],
  purgeMails: ['POST /outbox/purge', 'account-flows:support', 'changed'],
  listAudit: ['GET /audit', 'account-flows:read', 'events'],
  explainLink: ['POST /links/explain', 'account-flows:read', 'state'],
  rotateKeys: ['POST /keys/rotate', 'account-flows:settings', 'resealed'],
} as const satisfies {
  [N in Name]: readonly [
    route: `${'GET' | 'PUT' | 'POST'} /${string}`,
    scope: AdminScope,
    field: RequiredKey<Operations[N]['answer']> | undefined,
  ]
}

type RequiredKey<T> = { [K in keyof T]-?: {} extends Pick<T, K> ? never : K }[keyof T]
