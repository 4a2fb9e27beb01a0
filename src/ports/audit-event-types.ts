/** All audit events of these flows (6). */
export const AUDIT_EVENT_TYPES = [
  'password_reset_requested',
  'password_reset_mail_sent',
  'password_reset_mail_failed',
  'password_reset_rejected',
  'password_reset_completed',
  'email_verification_requested',
  'email_verification_mail_sent',
  'email_verification_mail_failed',
  'email_verification_rejected',
  'email_verification_completed',
  'email_login_blocked',
  'sessions_ended',
  'settings_changed',
  'admin_auth_failed',
  'admin_action',
] as const

export type AuditEventType = (typeof AUDIT_EVENT_TYPES)[number]
