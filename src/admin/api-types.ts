// Made by `npm run docs` out of src/admin/schemas.ts and src/admin/document.ts; not to be edited.

/** Settings by name. All values are strings. */
export interface Settings {
  /** How long a password reset link stays valid. Expected: a duration from 1s to 7d, such as 1h, 90m, 1h30m or 7d. */
  password_reset_expiration?: string
  /** When true, unverified users cannot complete login. Expected: "true" or "false". */
  require_email_verification?: 'true' | 'false'
  /** How long a verification link stays valid. Expected: a duration from 1s to 30d, such as 1h, 90m, 1h30m or 7d. */
  email_verification_expiration?: string
  /** Who has to press a button before a verification link does anything. off: nobody. other_browser: whoever opens it in another browser than the one that logged in, which then finishes the login. always: everybody. Expected: "off", "other_browser" or "always". */
  email_link_confirmation?: 'off' | 'other_browser' | 'always'
  /** SMTP server host name. Expected: a host name or an IP address, without port; or an empty string for none. */
  smtp_host?: string
  /** SMTP server port, typically 587. Expected: a decimal number from 1 to 65535. */
  smtp_port?: string
  /** SMTP authentication user name. Expected: at most 255 printable characters; or an empty string for none. */
  smtp_username?: string
  /** SMTP authentication password. Expected: at most 255 printable characters; or an empty string for none. Shown as "***"; "***" sent back keeps it. */
  smtp_password?: string
  /** Sender e-mail address. Expected: one plain e-mail address; or an empty string for none. */
  smtp_from?: string
  /** Sender name, shown before the address. Expected: at most 64 printable characters, without spaces at its ends; or an empty string for none. */
  smtp_from_name?: string
  /** When true, a mail tells the user that the password was changed by a reset. Expected: "true" or "false". */
  password_changed_email?: 'true' | 'false'
  /** When true, a username gets no reset link while the address of its account is not verified. Expected: "true" or "false". */
  reset_requires_verified_email?: 'true' | 'false'
  /** How many forms one address may send in a minute; the others are answered 429. Expected: "0" for no limit, or a decimal number from 1 to 10000. */
  requests_per_ip_per_minute?: string
  /** How many mails an account, and a mailbox, may ask for in an hour. Further requests get none while the account has a link to use. Expected: "0" for no limit, or a decimal number from 1 to 10000. */
  mails_per_account_per_hour?: string
  /** How long a request for the same kind of mail gets none while the account has a link. Expected: "0s" for none, or a duration from 1s to 1d, such as 30s or 5m. */
  resend_cooldown?: string
  /** How many mails leave in a minute, of all processes together; the others wait. Expected: "0" for no limit, or a decimal number from 1 to 10000. */
  mails_per_minute?: string
  /** TLS to the SMTP server. auto: implicit on port 465, otherwise STARTTLS, which only a loopback host may do without. implicit: from the first byte. starttls: it must succeed. none: never. Expected: "auto", "implicit", "starttls" or "none". */
  smtp_tls?: 'auto' | 'implicit' | 'starttls' | 'none'
  /** How long an event of the audit log is kept, from when it is recorded. Expected: a duration from 7d to 3650d, such as 90d. */
  audit_retention?: string
  /** Minimum length of a new password, in characters. Expected: a decimal number from 1 to 72. */
  validation_min_password_length?: string
  /** Maximum length of a new password, in characters. Expected: a decimal number from 1 to 72. */
  validation_max_password_length?: string
}

/** The settings in force, those without a value left out. */
export interface SettingsInForce {
  /** How long a password reset link stays valid. Expected: a duration from 1s to 7d, such as 1h, 90m, 1h30m or 7d. */
  password_reset_expiration: string
  /** When true, unverified users cannot complete login. Expected: "true" or "false". */
  require_email_verification: 'true' | 'false'
  /** How long a verification link stays valid. Expected: a duration from 1s to 30d, such as 1h, 90m, 1h30m or 7d. */
  email_verification_expiration: string
  /** Who has to press a button before a verification link does anything. off: nobody. other_browser: whoever opens it in another browser than the one that logged in, which then finishes the login. always: everybody. Expected: "off", "other_browser" or "always". */
  email_link_confirmation: 'off' | 'other_browser' | 'always'
  /** SMTP server host name. Expected: a host name or an IP address, without port; or an empty string for none. */
  smtp_host?: string
  /** SMTP server port, typically 587. Expected: a decimal number from 1 to 65535. */
  smtp_port?: string
  /** SMTP authentication user name. Expected: at most 255 printable characters; or an empty string for none. */
  smtp_username?: string
  /** SMTP authentication password. Expected: at most 255 printable characters; or an empty string for none. Shown as "***"; "***" sent back keeps it. */
  smtp_password?: string
  /** Sender e-mail address. Expected: one plain e-mail address; or an empty string for none. */
  smtp_from?: string
  /** Sender name, shown before the address. Expected: at most 64 printable characters, without spaces at its ends; or an empty string for none. */
  smtp_from_name?: string
  /** When true, a mail tells the user that the password was changed by a reset. Expected: "true" or "false". */
  password_changed_email: 'true' | 'false'
  /** When true, a username gets no reset link while the address of its account is not verified. Expected: "true" or "false". */
  reset_requires_verified_email: 'true' | 'false'
  /** How many forms one address may send in a minute; the others are answered 429. Expected: "0" for no limit, or a decimal number from 1 to 10000. */
  requests_per_ip_per_minute: string
  /** How many mails an account, and a mailbox, may ask for in an hour. Further requests get none while the account has a link to use. Expected: "0" for no limit, or a decimal number from 1 to 10000. */
  mails_per_account_per_hour: string
  /** How long a request for the same kind of mail gets none while the account has a link. Expected: "0s" for none, or a duration from 1s to 1d, such as 30s or 5m. */
  resend_cooldown: string
  /** How many mails leave in a minute, of all processes together; the others wait. Expected: "0" for no limit, or a decimal number from 1 to 10000. */
  mails_per_minute: string
  /** TLS to the SMTP server. auto: implicit on port 465, otherwise STARTTLS, which only a loopback host may do without. implicit: from the first byte. starttls: it must succeed. none: never. Expected: "auto", "implicit", "starttls" or "none". */
  smtp_tls: 'auto' | 'implicit' | 'starttls' | 'none'
  /** How long an event of the audit log is kept, from when it is recorded. Expected: a duration from 7d to 3650d, such as 90d. */
  audit_retention: string
  /** Minimum length of a new password, in characters. Expected: a decimal number from 1 to 72. */
  validation_min_password_length: string
  /** Maximum length of a new password, in characters. Expected: a decimal number from 1 to 72. */
  validation_max_password_length: string
  /** What is worth knowing about these settings. */
  warnings?: string[]
}

/** One thing wrong with a request to change settings. */
export interface SettingProblem {
  key: string
  /** What a value must be. */
  expected: string
  /** What came; never the value of a secret, or of a setting that does not exist. */
  got: string
}

/** One of several accounts that could be meant. */
export interface Candidate {
  id: string
  username: string
}

/** RFC 9457. `code` is stable, `title` is a sentence and may change. */
export interface Problem {
  title: string
  status: number
  code: string
  errors?: SettingProblem[]
  candidates?: Candidate[]
}

/** One check. After the first of a row that failed, the rest is skipped. */
export interface Check {
  step: string
  status: 'ok' | 'warning' | 'failed' | 'skipped'
  /** What is so. */
  message: string
  /** What the other side said, without anything secret. */
  reply?: string
  /** What to do. */
  advice?: string
}

/** What the checks found. */
export interface CheckReport {
  /** Whether none failed. */
  ok: boolean
  checks: Check[]
}

/** Where a test mail goes. */
export interface MailTest {
  /** One plain e-mail address. */
  to: string
}

/** What to check beyond the server itself. */
export interface DoctorRequest {
  /** Whether the mail server takes mails to this address; none is sent. */
  to?: string
}

/** A mail as it would leave, with made-up values and a link that leads nowhere. */
export interface MailPreview {
  subject: string
  text: string
  html: string
}

/** One account: `id`, or `user`, which is a username, a verified e-mail address or an id, and must mean one account alone. */
export interface AccountQuery {
  user?: string
  id?: string
}

/** What became of a link; never the link itself. */
export interface Link {
  kind: 'password_reset' | 'email_verification'
  state: 'live' | 'used' | 'superseded' | 'expired' | 'void'
  created_at: string
  expires_at: string
  used_at?: string
  invalidated_at?: string
  /** When all effects of the reset were done. */
  completed_at?: string
  client_id?: string
  /** The request that it was made for. */
  mail_id: string
}

/** A mail that waits, or that nobody will try to send again. */
export interface MailJob {
  id: string
  kind: string
  state: 'waiting' | 'dead'
  account_id?: string
  requested_at?: string
  next_attempt_at?: string
  expires_at?: string
  attempts: number
  /** Why the last attempt failed, or why there will be none. */
  reason?: string
  /** Whether a worker has it. */
  is_held: boolean
}

/** An event of the audit log. */
export interface AuditEvent {
  id: string
  type: string
  at: string
  recorded_at: string
  account_id?: string
  address?: string
  user_agent?: string
  client_id?: string
  reason?: string
  details?: Record<string, unknown>
}

/** What support needs to know of an account. */
export interface UserStatus {
  id: string
  username: string
  email?: string
  email_verified: boolean
  disabled: boolean
  has_password: boolean
  /** Grants, codes and tokens from then or before are dead. */
  oauth_sessions_ended_at?: string
  /** Sessions from then or before are dead. */
  idp_sessions_ended_at?: string
  /** Why this account may get no mail, and what helps. */
  hints: string[]
  /** Newest first. */
  links: Link[]
  /** Newest first. */
  mails: MailJob[]
  /** Newest first. */
  events: AuditEvent[]
}

/** A mail was asked for. */
export interface Accepted {
  /** To ask for its outcome. */
  mail_id: string
}

/** What became of a mail that was asked for. */
export interface MailOutcome {
  mail_id: string
  /** ended: there is no mail, for the reason; dead: it could not be sent; unknown: nothing is known of such a request. */
  state: 'waiting' | 'sent' | 'ended' | 'dead' | 'unknown'
  reason?: string
  attempts?: number
  next_attempt_at?: string
  sent_at?: string
}

/** How many records were deleted; none is told where the adapter cannot tell. */
export interface EndedSessions {
  /** Grants, codes and tokens. */
  oauth?: number
  /** Sessions and login results. */
  idp?: number
}

/** One account by its id, be the user gone already. */
export interface AccountId {
  id: string
}

/** How many records of the account were removed. */
export interface ForgottenAccount {
  mails: number
  reset_links: number
  verification_links: number
  waiting_logins: number
  events: number
  /** Resets that are being finished, and mails that are being sent: they are still there. Ask again in a minute. */
  under_way: number
}

/** Mails, newest request first. */
export interface Outbox {
  mails: MailJob[]
}

/** One mail by its id, or all dead letters. */
export interface MailChoice {
  id?: string
  all_dead?: boolean
  /** Of all dead letters, those that were requested before this time. */
  before?: string
}

/** How many mails were changed. */
export interface MailsChanged {
  changed: number
  /** There are further ones: ask again with this `before`. */
  more_before?: string
}

/** Events; the one that was recorded last comes first. */
export interface AuditLog {
  events: AuditEvent[]
}

/** A link out of a mail. It is not consumed. */
export interface LinkQuery {
  link: string
}

/** What a link is, and what became of it. */
export interface LinkExplanation {
  kind?: 'password_reset' | 'email_verification'
  /** void: the account changed since; altered: its parameters are not those that were signed. */
  state: 'live' | 'used' | 'superseded' | 'expired' | 'void' | 'altered' | 'unknown' | 'not_a_link'
  /** One sentence for the person who asks. */
  summary: string
  /** What to do. */
  advice: string
  /** Of a verification link. */
  signature?: 'valid' | 'invalid' | 'missing'
  /** Names of the parameters that are not as they were mailed. */
  altered: string[]
  account_id?: string
  client_id?: string
  created_at?: string
  expires_at?: string
  used_at?: string
  invalidated_at?: string
  completed_at?: string
  mail_id?: string
  /** What was recorded since it was made, oldest first. */
  history: AuditEvent[]
}

/** The secrets are encrypted with the first key of the ring now. */
export interface KeysRotation {
  /** Settings that another key had encrypted. */
  resealed: string[]
  /** Settings that no key of the ring opens; give them again. */
  unreadable: string[]
  /** How many keys the ring has. */
  keys: number
  /** Until then live verification links may be signed with the other keys of the ring. */
  old_keys_needed_until?: string
}

/** What each operation takes and answers. */
export interface Operations {
  /** The settings in force. */
  getSettings: { query: {}; body: undefined; answer: SettingsInForce }
  /** Changes settings: all keys are checked, then all are applied, or none. */
  putSettings: {
    query: {
      /** Everything is checked, and nothing applied; the answer is what would be. */
      dry_run?: boolean
    }
    body: Settings
    answer: SettingsInForce
  }
  /** Gives settings their defaults back, or no value where there is none. */
  unsetSettings: {
    query: {
      /** Name of a setting; may be repeated. */
      key: string[]
      /** Everything is checked, and nothing applied; the answer is what would be. */
      dry_run?: boolean
    }
    body: undefined
    answer: SettingsInForce
  }
  /** Sends a test mail at once, and tells each step. */
  testMail: { query: {}; body: MailTest; answer: CheckReport }
  /** Renders a mail. */
  previewMail: {
    query: {
      /** Which mail. */
      template: 'password-reset' | 'email-verification' | 'password-changed'
      /** In which language. */
      locale?: string
    }
    body: undefined
    answer: MailPreview
  }
  /** What became of a mail that was asked for. */
  mailOutcome: {
    query: {
      /** From `Accepted`. */
      mail_id: string
    }
    body: undefined
    answer: MailOutcome
  }
  /** Checks keys, database, clock, base URL and mail server, from the server itself. */
  runDoctor: { query: {}; body: DoctorRequest; answer: CheckReport }
  /** What is known of an account, its links and its mails. Audited. */
  userStatus: { query: {}; body: AccountQuery; answer: UserStatus }
  /** Asks for a reset link to the address of the account. Audited. */
  sendReset: { query: {}; body: AccountQuery; answer: Accepted }
  /** Asks for a verification link to the address of the account. Audited. */
  sendVerification: { query: {}; body: AccountQuery; answer: Accepted }
  /** Ends everything the account is signed in with, and voids every link that was mailed to it. Audited. */
  endSessions: { query: {}; body: AccountQuery; answer: EndedSessions }
  /** Erases what is recorded of an account: mails, links, logins that wait, events; not what admins did, which loses the id. Audited, without the id. */
  forgetUser: { query: {}; body: AccountId; answer: ForgottenAccount }
  /** Mails that wait, and dead letters. */
  listOutbox: {
    query: {
      /** Both by default. */
      state?: 'waiting' | 'dead'
      /** Of one account. */
      account_id?: string
      /** At most so many. */
      limit?: number
    }
    body: undefined
    answer: Outbox
  }
  /** Sends a waiting mail now, or asks again for what became a dead letter. Audited. */
  retryMails: { query: {}; body: MailChoice; answer: MailsChanged }
  /** Removes a waiting mail, or dead letters. Audited. */
  purgeMails: { query: {}; body: MailChoice; answer: MailsChanged }
  /** Events of the audit log. */
  listAudit: {
    query: {
      /** Of one account. */
      account_id?: string
      /** Type of event; may be repeated. */
      type?: (
        | 'password_reset_requested'
        | 'password_reset_mail_sent'
        | 'password_reset_mail_failed'
        | 'password_reset_rejected'
        | 'password_reset_completed'
        | 'email_verification_requested'
        | 'email_verification_mail_sent'
        | 'email_verification_mail_failed'
        | 'email_verification_rejected'
        | 'email_verification_completed'
        | 'email_login_blocked'
        | 'sessions_ended'
        | 'settings_changed'
        | 'admin_auth_failed'
        | 'admin_action'
      )[]
      /** Only what was recorded then or later. */
      recorded_from?: string
      /** At most so many. */
      limit?: number
    }
    body: undefined
    answer: AuditLog
  }
  /** What a link is, and what became of it. It is not consumed. Audited. */
  explainLink: { query: {}; body: LinkQuery; answer: LinkExplanation }
  /** Encrypts the stored secrets with the first key of the ring. Audited. */
  rotateKeys: { query: {}; body: undefined; answer: KeysRotation }
}
