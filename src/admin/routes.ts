import type { OperationName } from './operations.ts'

/** Written by `npm run docs`: the route of each operation, and a field that each of its answers has. By it the client knows our answer from that of a proxy. */
export const ROUTES = {
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
  endSessions: ['POST /users/end-sessions', undefined],
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
} as const satisfies Record<OperationName, readonly [route: string, field: string | undefined]>
