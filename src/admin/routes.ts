import type { OperationName } from './all-operations.ts'
import type { AdminScope } from './options.ts'

type Row = readonly [string, AdminScope, string | undefined]

/**
 * Where each operation is, the scope that it needs, and a field that each of its answers has, if there is one. By this field the client
 * knows the answer from that of a proxy.
 */
export const ROUTES = {
  getSettings: ['GET /settings', 'account-flows:read', 'password_reset_expiration'],
  settingsHistory: ['GET /settings/history', 'account-flows:read', 'versions'],
  putSettings: ['PUT /settings', 'account-flows:settings', 'password_reset_expiration'],
  unsetSettings: ['POST /settings/unset', 'account-flows:settings', 'password_reset_expiration'],
  testMail: ['POST /mail/test', 'account-flows:settings', 'ok'],
  previewMail: ['GET /mail/preview', 'account-flows:read', 'subject'],
  mailOutcome: ['GET /mail/outcome', 'account-flows:read', 'mail_id'],
  runDoctor: ['POST /doctor', 'account-flows:support', 'ok'],
  userStatus: ['POST /users/status', 'account-flows:read', 'cause'],
  sendReset: ['POST /users/send-reset', 'account-flows:support', 'mail_id'],
  inviteUser: ['POST /users/invite', 'account-flows:support', 'mail_id'],
  sendVerification: ['POST /users/send-verification', 'account-flows:support', 'mail_id'],
  emailChanged: ['POST /users/email-changed', 'account-flows:support', undefined],
  endSessions: ['POST /users/end-sessions', 'account-flows:support', undefined],
  verifyUser: ['POST /users/verify', 'account-flows:support', 'email'],
  unverifyUser: ['POST /users/unverify', 'account-flows:support', 'email'],
  forgetUser: ['POST /users/forget', 'account-flows:support', 'mails'],
  listOutbox: ['GET /outbox', 'account-flows:read', 'mails'],
  showMail: ['GET /outbox/mail', 'account-flows:read', 'mail_id'],
  retryMails: ['POST /outbox/retry', 'account-flows:support', 'changed'],
  purgeMails: ['POST /outbox/purge', 'account-flows:support', 'changed'],
  listAudit: ['GET /audit', 'account-flows:read', 'events'],
  explainLink: ['POST /links/explain', 'account-flows:read', 'state'],
  rotateKeys: ['POST /keys/rotate', 'account-flows:settings', 'resealed'],
} as const satisfies Record<OperationName, Row>
