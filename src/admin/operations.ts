/**
 * The operations of the admin API (4.5), by the name of the method of `AdminClient`.
 *
 * @module
 */
import { AUDIT_EVENT_TYPES } from '../ports/audit-event-types.ts'
import { DRY_RUN, LIMIT, type TypedSchema } from './schema-kinds.ts'
import type { schemas } from './schemas.ts'
import type { AdminScope } from './scopes.ts'

type SchemaName = keyof typeof schemas

export interface Operation {
  method: 'GET' | 'PUT' | 'POST'
  path: string
  /** What the token must have. */
  scope: AdminScope
  summary: string
  query?: Record<
    string,
    TypedSchema & { description: string; isRequired?: boolean; isList?: boolean }
  >
  body?: SchemaName
  answer: SchemaName
  status?: 200 | 202
  /** Whether it answers an ETag, or honours `If-Match`. */
  etag?: true
}

export const operations = {
  getSettings: {
    method: 'GET',
    path: '/settings',
    scope: 'account-flows:read',
    summary: 'The settings in force.',
    answer: 'SettingsInForce',
    etag: true,
  },
  putSettings: {
    method: 'PUT',
    path: '/settings',
    scope: 'account-flows:settings',
    summary: 'Changes settings: all keys are checked, then all are applied, or none.',
    query: { dry_run: DRY_RUN },
    body: 'Settings',
    answer: 'SettingsInForce',
    etag: true,
  },
  unsetSettings: {
    method: 'POST',
    path: '/settings/unset',
    scope: 'account-flows:settings',
    summary: 'Gives settings their defaults back, or no value where there is none.',
    query: {
      key: {
        type: 'string',
        description: 'Name of a setting; may be repeated.',
        isRequired: true,
        isList: true,
      },
      dry_run: DRY_RUN,
    },
    answer: 'SettingsInForce',
    etag: true,
  },
  testMail: {
    method: 'POST',
    path: '/mail/test',
    scope: 'account-flows:settings',
    summary: 'Sends a test mail at once, and tells each step.',
    body: 'MailTest',
    answer: 'CheckReport',
  },
  previewMail: {
    method: 'GET',
    path: '/mail/preview',
    scope: 'account-flows:read',
    summary: 'Renders a mail.',
    query: {
      template: {
        type: 'string',
        enum: ['password-reset', 'email-verification', 'password-changed'],
        description: 'Which mail.',
        isRequired: true,
      },
      locale: { type: 'string', default: 'en', description: 'In which language.' },
    },
    answer: 'MailPreview',
  },
  mailOutcome: {
    method: 'GET',
    path: '/mail/outcome',
    scope: 'account-flows:read',
    summary: 'What became of a mail that was asked for.',
    query: { mail_id: { type: 'string', description: 'From `Accepted`.', isRequired: true } },
    answer: 'MailOutcome',
  },
  runDoctor: {
    method: 'POST',
    path: '/doctor',
    scope: 'account-flows:support',
    summary: 'Checks keys, database, clock, base URL and mail server, from the server itself.',
    body: 'DoctorRequest',
    answer: 'CheckReport',
  },
  userStatus: {
    method: 'POST',
    path: '/users/status',
    scope: 'account-flows:read',
    summary: 'What is known of an account, its links and its mails. Audited.',
    body: 'AccountQuery',
    answer: 'UserStatus',
  },
  sendReset: {
    method: 'POST',
    path: '/users/send-reset',
    scope: 'account-flows:support',
    summary: 'Asks for a reset link to the address of the account. Audited.',
    body: 'AccountQuery',
    answer: 'Accepted',
    status: 202,
  },
  sendVerification: {
    method: 'POST',
    path: '/users/send-verification',
    scope: 'account-flows:support',
    summary: 'Asks for a verification link to the address of the account. Audited.',
    body: 'AccountQuery',
    answer: 'Accepted',
    status: 202,
  },
  endSessions: {
    method: 'POST',
    path: '/users/end-sessions',
    scope: 'account-flows:support',
    summary:
      'Ends everything the account is signed in with, and voids every link that was mailed to it. Audited.',
    body: 'AccountQuery',
    answer: 'EndedSessions',
  },
  forgetUser: {
    method: 'POST',
    path: '/users/forget',
    scope: 'account-flows:support',
    summary:
      'Erases what is recorded of an account: mails, links, logins that wait, events; not what admins did, which loses the id. Audited, without the id.',
    body: 'AccountId',
    answer: 'ForgottenAccount',
  },
  listOutbox: {
    method: 'GET',
    path: '/outbox',
    scope: 'account-flows:read',
    summary: 'Mails that wait, and dead letters.',
    query: {
      state: { type: 'string', enum: ['waiting', 'dead'], description: 'Both by default.' },
      account_id: { type: 'string', description: 'Of one account.' },
      limit: LIMIT,
    },
    answer: 'Outbox',
  },
  retryMails: {
    method: 'POST',
    path: '/outbox/retry',
    scope: 'account-flows:support',
    summary: 'Sends a waiting mail now, or asks again for what became a dead letter. Audited.',
    body: 'MailChoice',
    answer: 'MailsChanged',
  },
  purgeMails: {
    method: 'POST',
    path: '/outbox/purge',
    scope: 'account-flows:support',
    summary: 'Removes a waiting mail, or dead letters. Audited.',
    body: 'MailChoice',
    answer: 'MailsChanged',
  },
  listAudit: {
    method: 'GET',
    path: '/audit',
    scope: 'account-flows:read',
    summary: 'Events of the audit log.',
    query: {
      account_id: { type: 'string', description: 'Of one account.' },
      type: {
        type: 'string',
        enum: AUDIT_EVENT_TYPES,
        description: 'Type of event; may be repeated.',
        isList: true,
      },
      recorded_from: {
        type: 'string',
        format: 'date-time',
        description: 'Only what was recorded then or later.',
      },
      limit: LIMIT,
    },
    answer: 'AuditLog',
  },
  explainLink: {
    method: 'POST',
    path: '/links/explain',
    scope: 'account-flows:read',
    summary: 'What a link is, and what became of it. It is not consumed. Audited.',
    body: 'LinkQuery',
    answer: 'LinkExplanation',
  },
  rotateKeys: {
    method: 'POST',
    path: '/keys/rotate',
    scope: 'account-flows:settings',
    summary: 'Encrypts the stored secrets with the first key of the ring. Audited.',
    answer: 'KeysRotation',
  },
} as const satisfies Record<string, Operation>
