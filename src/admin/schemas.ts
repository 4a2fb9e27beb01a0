/**
 * What goes over the wire of the admin API, as JSON Schema 2020-12. The client's types and docs/openapi.json come from here.
 *
 * @module
 */
import { allSettings } from '../settings/table.ts'
import {
  count,
  flag,
  given,
  list,
  object,
  one,
  ref,
  type Schema,
  text,
  time,
  type TypedSchema,
} from './schema-kinds.ts'

const settings = Object.fromEntries(
  allSettings.map(({ name, meaning, expected, default: byDefault, values, secret }) => [
    `${name}?`,
    {
      type: 'string' as const,
      description:
        `${meaning} Expected: ${expected}.` +
        (secret ? ' Shown as "***"; "***" sent back keeps it.' : ''),
      ...(values && { enum: values }),
      ...(byDefault !== undefined && { default: byDefault }),
    },
  ]),
)

/** Those with a default always have a value. */
const settingsInForce = Object.fromEntries(
  Object.entries(settings).map(([name, schema]) => [
    'default' in schema ? name.replace('?', '') : name,
    schema,
  ]),
)

const KINDS = ['password_reset', 'email_verification']
const anything: Schema = { type: 'object', additionalProperties: true }
export const schemas = {
  Settings: object('Settings by name. All values are strings.', settings),
  SettingsInForce: object('The settings in force, those without a value left out.', {
    ...settingsInForce,
    'warnings?': list(text(), 'What is worth knowing about these settings.'),
  }),
  SettingProblem: object('One thing wrong with a request to change settings.', {
    key: text(),
    expected: text('What a value must be.'),
    got: text('What came; never the value of a secret, or of a setting that does not exist.'),
  }),
  Candidate: object('One of several accounts that could be meant.', {
    id: text(),
    username: text(),
  }),
  Problem: object('RFC 9457. `code` is stable, `title` is a sentence and may change.', {
    title: text(),
    status: { type: 'integer' },
    code: text(),
    'errors?': list(ref('SettingProblem')),
    'candidates?': list(ref('Candidate')),
  }),

  Check: object('One check. After the first of a row that failed, the rest is skipped.', {
    step: text(),
    status: one(['ok', 'warning', 'failed', 'skipped']),
    message: text('What is so.'),
    'reply?': text('What the other side said, without anything secret.'),
    'advice?': text('What to do.'),
  }),
  CheckReport: object('What the checks found.', {
    ok: flag('Whether none failed.'),
    checks: list(ref('Check')),
  }),
  MailTest: object('Where a test mail goes.', { to: given('One plain e-mail address.') }),
  DoctorRequest: object('What to check beyond the server itself.', {
    'to?': given('Whether the mail server takes mails to this address; none is sent.'),
  }),
  MailPreview: object(
    'A mail as it would leave, with made-up values and a link that leads nowhere.',
    {
      subject: text(),
      text: text(),
      html: text(),
    },
  ),

  AccountQuery: object(
    'One account: `id`, or `user`, which is a username, a verified e-mail address or an id, and must mean one account alone.',
    { 'user?': given(), 'id?': given() },
  ),
  Link: object('What became of a link; never the link itself.', {
    kind: one(KINDS),
    state: one(['live', 'used', 'superseded', 'expired', 'void']),
    created_at: time(),
    expires_at: time(),
    'used_at?': time(),
    'invalidated_at?': time(),
    'completed_at?': time('When all effects of the reset were done.'),
    'client_id?': text(),
    mail_id: text('The request that it was made for.'),
  }),
  MailJob: object('A mail that waits, or that nobody will try to send again.', {
    id: text(),
    kind: text(),
    state: one(['waiting', 'dead']),
    'account_id?': text(),
    'requested_at?': time(),
    'next_attempt_at?': time(),
    'expires_at?': time(),
    attempts: count(),
    'reason?': text('Why the last attempt failed, or why there will be none.'),
    is_held: flag('Whether a worker has it.'),
  }),
  AuditEvent: object('An event of the audit log.', {
    id: text(),
    type: text(),
    at: time(),
    recorded_at: time(),
    'account_id?': text(),
    'address?': text(),
    'user_agent?': text(),
    'client_id?': text(),
    'reason?': text(),
    'details?': anything,
  }),
  UserStatus: object('What support needs to know of an account.', {
    id: text(),
    username: text(),
    'email?': text(),
    email_verified: flag(),
    disabled: flag(),
    has_password: flag(),
    'oauth_sessions_ended_at?': time('Grants, codes and tokens from then or before are dead.'),
    'idp_sessions_ended_at?': time('Sessions from then or before are dead.'),
    hints: list(text(), 'Why this account may get no mail, and what helps.'),
    links: list(ref('Link'), 'Newest first.'),
    mails: list(ref('MailJob'), 'Newest first.'),
    events: list(ref('AuditEvent'), 'Newest first.'),
  }),
  Accepted: object('A mail was asked for.', { mail_id: text('To ask for its outcome.') }),
  MailOutcome: object('What became of a mail that was asked for.', {
    mail_id: text(),
    state: one(
      ['waiting', 'sent', 'ended', 'dead', 'unknown'],
      'ended: there is no mail, for the reason; dead: it could not be sent; unknown: nothing is known of such a request.',
    ),
    'reason?': text(),
    'attempts?': count(),
    'next_attempt_at?': time(),
    'sent_at?': time(),
  }),
  EndedSessions: object(
    'How many records were deleted; none is told where the adapter cannot tell.',
    {
      'oauth?': count('Grants, codes and tokens.'),
      'idp?': count('Sessions and login results.'),
    },
  ),

  AccountId: object('One account by its id, be the user gone already.', { id: given() }),
  ForgottenAccount: object('How many records of the account were removed.', {
    mails: count(),
    reset_links: count(),
    verification_links: count(),
    waiting_logins: count(),
    events: count(),
    under_way: count(
      'Resets that are being finished, and mails that are being sent: they are still there. Ask again in a minute.',
    ),
  }),

  Outbox: object('Mails, newest request first.', { mails: list(ref('MailJob')) }),
  MailChoice: object('One mail by its id, or all dead letters.', {
    'id?': given(),
    'all_dead?': flag(),
    'before?': given('Of all dead letters, those that were requested before this time.'),
  }),
  MailsChanged: object('How many mails were changed.', {
    changed: count(),
    'more_before?': time('There are further ones: ask again with this `before`.'),
  }),

  AuditLog: object('Events; the one that was recorded last comes first.', {
    events: list(ref('AuditEvent')),
  }),

  LinkQuery: object('A link out of a mail. It is not consumed.', { link: given() }),
  LinkExplanation: object('What a link is, and what became of it.', {
    'kind?': one(KINDS),
    state: one(
      ['live', 'used', 'superseded', 'expired', 'void', 'altered', 'unknown', 'not_a_link'],
      'void: the account changed since; altered: its parameters are not those that were signed.',
    ),
    summary: text('One sentence for the person who asks.'),
    advice: text('What to do.'),
    'signature?': one(['valid', 'invalid', 'missing'], 'Of a verification link.'),
    altered: list(text(), 'Names of the parameters that are not as they were mailed.'),
    'account_id?': text(),
    'client_id?': text(),
    'created_at?': time(),
    'expires_at?': time(),
    'used_at?': time(),
    'invalidated_at?': time(),
    'completed_at?': time(),
    'mail_id?': text(),
    history: list(ref('AuditEvent'), 'What was recorded since it was made, oldest first.'),
  }),

  KeysRotation: object('The secrets are encrypted with the first key of the ring now.', {
    resealed: list(text(), 'Settings that another key had encrypted.'),
    unreadable: list(text(), 'Settings that no key of the ring opens; give them again.'),
    keys: count('How many keys the ring has.'),
    'old_keys_needed_until?': time(
      'Until then live verification links may be signed with the other keys of the ring.',
    ),
  }),
} satisfies Record<string, TypedSchema>
