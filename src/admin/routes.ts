import type { OperationName } from './all-operations.ts'

/** Where each operation is, and a field of its answer, which the answer of a proxy lacks. Made by `npm run docs`; not to be edited. */
export const ROUTES: Record<OperationName, readonly [route: string, field?: string]> = {
  getSettings: ['GET /settings', 'password_reset_expiration'],
  settingsHistory: ['GET /settings/history', 'versions'],
  putSettings: ['PUT /settings', 'password_reset_expiration'],
  unsetSettings: ['POST /settings/unset', 'password_reset_expiration'],
  testMail: ['POST /mail/test', 'ok'],
  previewMail: ['GET /mail/preview', 'subject'],
  mailOutcome: ['GET /mail/outcome', 'mail_id'],
  runDoctor: ['POST /doctor', 'ok'],
  userStatus: ['POST /users/status', 'cause'],
  sendReset: ['POST /users/send-reset', 'mail_id'],
  inviteUser: ['POST /users/invite', 'mail_id'],
  sendVerification: ['POST /users/send-verification', 'mail_id'],
  emailChanged: ['POST /users/email-changed'],
  endSessions: ['POST /users/end-sessions'],
  verifyUser: ['POST /users/verify', 'email'],
  unverifyUser: ['POST /users/unverify', 'email'],
  forgetUser: ['POST /users/forget', 'mails'],
  listOutbox: ['GET /outbox', 'mails'],
  showMail: ['GET /outbox/mail', 'mail_id'],
  retryMails: ['POST /outbox/retry', 'changed'],
  purgeMails: ['POST /outbox/purge', 'changed'],
  listAudit: ['GET /audit', 'events'],
  explainLink: ['POST /links/explain', 'state'],
  rotateKeys: ['POST /keys/rotate', 'resealed'],
}
