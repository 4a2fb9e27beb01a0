/**
 * The admin API (4.5): what each operation takes and answers, and who may ask. The server reads what comes in by this description; the
 * types of handlers and clients, and docs/openapi.json, are made of it.
 */
import * as z from 'zod'
import { AUDIT_EVENT_TYPES } from '../ports/audit.ts'
import { linkKinds, mailTemplates } from '../ports/mail-kinds.ts'
import { allSettings, type DefaultedName, type SettingTexts } from '../settings/table.ts'
import type { AdminScope } from './bearer-tokens.ts'

const MAX_TEXT = 8_192

// Each kind that somebody sends says what it takes: that is the `expected` of a refusal.
const TEXT = `a text of at most ${MAX_TEXT} characters, and not empty`
const given = z
  .string(TEXT)
  .min(1, TEXT)
  .max(MAX_TEXT, TEXT)
  .refine((text) => text.isWellFormed() && !text.includes('\0'), TEXT)
const flag = z.boolean('true or false')
const oneOf = <const T extends readonly string[]>(values: T) =>
  z.enum(values, `one of ${values.join(', ')}`)
const wholeNumber = (least: number, most: number) => {
  const words = `a decimal number from ${least} to ${most}`
  return z.int(words).min(least, words).max(most, words)
}
const TIME = 'a time such as 2026-01-31T08:00:00Z'
const givenTime = z.string(TIME).refine(isTime, TIME).meta({ format: 'date-time' })

/** The 30th of February, which `Date` reads as the 2nd of March, is no time. */
function isTime(text: string): boolean {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?Z$/.test(text)) return false
  const time = new Date(text)
  return !Number.isNaN(time.getTime()) && time.toISOString().startsWith(text.slice(0, 10))
}

const text = z.string()
const time = z.string().meta({ format: 'date-time' })
const count = z.int().min(0)
const optional = z.exactOptional
const object = <S extends z.core.$ZodLooseShape>(description: string, shape: S) =>
  z.strictObject(shape).describe(description)

const settingTexts = Object.fromEntries(
  allSettings.map(({ name, meaning, expected, default: byDefault, values, secret }) => {
    const description =
      `${meaning} Expected: ${expected}.` +
      (secret ? ' Shown as "***"; "***" sent back keeps it.' : '')
    const kind: z.ZodType = values ? z.enum([...values]) : text
    const isDefaulted = byDefault !== undefined
    return [name, kind.meta({ description, ...(isDefaulted && { default: byDefault }) })]
  }),
)
const optionalOnes = (names: string[]) =>
  Object.fromEntries(names.map((name) => [name, optional(settingTexts[name] ?? text)]))
const undefaulted = allSettings.filter((one) => one.default === undefined).map(({ name }) => name)

export type Settings = Partial<SettingTexts>
/** Not read by this description: the settings judge themselves, and say more. */
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- made of the table that the type is made of
export const Settings = object(
  'Settings by name. All values are strings.',
  optionalOnes(Object.keys(settingTexts)),
) as unknown as z.ZodType<Settings, Settings>

/** Those with a default always have a value. */
export type SettingsInForce = Settings & Pick<SettingTexts, DefaultedName> & { warnings?: string[] }
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as above
export const SettingsInForce = object(
  'The settings in force. Settings without a value are left out.',
  {
    ...settingTexts,
    ...optionalOnes(undefaulted),
    warnings: optional(z.array(text).describe('Warnings about these settings.')),
  },
) as unknown as z.ZodType<SettingsInForce>

export type SettingProblem = z.infer<typeof SettingProblem>
export const SettingProblem = object('One thing wrong with a request to change settings.', {
  key: text,
  expected: text.describe('What a value must be.'),
  got: text.describe('What was sent; never the value of a secret, or of an unknown setting.'),
})

export type SettingsVersion = z.infer<typeof SettingsVersion>
export const SettingsVersion = object('One version of the settings.', {
  version: count,
  at: optional(time.describe('Left out if a person edited the database.')),
  actor: optional(text.describe('Who changed them: the token; `initialSettings`: the host.')),
  changes: optional(
    z
      .array(
        object('A setting that changed. A value that was not stored is left out.', {
          key: text,
          before: optional(text),
          after: optional(text),
        }),
      )
      .describe(
        'Left out if the version before is not kept. The values of secrets are never shown.',
      ),
  ),
  settings: z.record(text, text).describe('What was stored, without secrets.'),
})

export type SettingsHistory = z.infer<typeof SettingsHistory>
export const SettingsHistory = object('The last versions, newest first: the first is in force.', {
  versions: z.array(SettingsVersion),
})

export type Candidate = z.infer<typeof Candidate>
export const Candidate = object('One of several accounts that match.', {
  id: text,
  username: text,
})

export type Problem = z.infer<typeof Problem>
export const Problem = object('RFC 9457. `code` is stable, `title` is a sentence and may change.', {
  title: text,
  status: z.int(),
  code: text,
  errors: optional(z.array(SettingProblem)),
  candidates: optional(z.array(Candidate)),
})

export type Check = z.infer<typeof Check>
export const Check = object('One check. After a failed check, the rest of its group is skipped.', {
  step: text,
  status: z
    .enum(['ok', 'advice', 'warning', 'failed', 'skipped'])
    .describe('advice: nothing is wrong, but another value is recommended.'),
  message: text.describe('What is so.'),
  reply: optional(text.describe('What the other side said, without anything secret.')),
  advice: optional(text.describe('What to do.')),
})

export type CheckReport = z.infer<typeof CheckReport>
export const CheckReport = object('What the checks found.', {
  ok: z.boolean().describe('Whether none failed.'),
  checks: z.array(Check),
})

export type MailTest = z.infer<typeof MailTest>
export const MailTest = object('Where a test mail goes.', {
  to: given.describe('One plain e-mail address.'),
  settings: optional(
    z
      .record(z.string(), z.string())
      .describe('Settings to try instead of those in force. They are not stored.'),
  ),
})

export type DoctorRequest = z.infer<typeof DoctorRequest>
export const DoctorRequest = object('What to check beyond the server itself.', {
  to: optional(
    given.describe('Also checks that the mail server accepts this address. No mail is sent.'),
  ),
})

export type MailPreview = z.infer<typeof MailPreview>
export const MailPreview = object(
  'A mail as it would be sent, with sample values and a link that does not work.',
  { subject: text, text, html: text },
)

export type AccountQuery = z.infer<typeof AccountQuery>
export const AccountQuery = object(
  'One account: `id`, or `user`. `user` is a username, a verified e-mail address or an id, and must match only one account.',
  { user: optional(given), id: optional(given) },
)

const KIND = z.enum(linkKinds)

export type Link = z.infer<typeof Link>
export const Link = object('The state of a link; never the link itself.', {
  kind: KIND,
  state: z.enum(['live', 'used', 'superseded', 'expired', 'void']),
  created_at: time,
  expires_at: time,
  used_at: optional(time),
  invalidated_at: optional(time),
  completed_at: optional(
    time.describe('When all effects of the reset, or of the invitation, were done.'),
  ),
  client_id: optional(text),
  mail_id: text.describe('The mail request that it was made for.'),
})

export type MailJob = z.infer<typeof MailJob>
export const MailJob = object('A mail that waits, or a dead letter.', {
  id: text,
  kind: text,
  state: z.enum(['waiting', 'dead']),
  account_id: optional(text),
  username: optional(text.describe('Of the account, as it is now.')),
  requested_at: optional(time),
  next_attempt_at: optional(time),
  expires_at: optional(time),
  attempts: count,
  reason: optional(text.describe('Why the last attempt failed, or why there is no other attempt.')),
  is_held: z.boolean().describe('Whether a worker has it.'),
})

export type AuditEvent = z.infer<typeof AuditEvent>
export const AuditEvent = object('An event of the audit log.', {
  id: text,
  type: text,
  at: time,
  recorded_at: time,
  account_id: optional(text),
  username: optional(text.describe('Of the account, as it is now.')),
  address: optional(text),
  user_agent: optional(text),
  client_id: optional(text),
  reason: optional(text),
  details: optional(z.record(z.string(), z.unknown())),
})

export type UserStatus = z.infer<typeof UserStatus>
export const UserStatus = object('What support needs to know of an account.', {
  cause: z
    .enum([
      'disabled',
      'no_address',
      'bad_address',
      'no_password',
      'has_password',
      'unverified',
      'ambiguous',
      'verified',
      'changed',
      'limited',
      'blocked',
      'refused',
      'mail_server_down',
      'waiting',
      'sent',
      'ended',
      'not_asked',
    ])
    .describe(
      'The outcome of the newest mail, or why there is none. refused: the mail server refused this mail. mail_server_down: it accepts no mail. ambiguous: several accounts have this verified address. blocked: somebody pressed "This wasn\'t me" in a mail, and nobody can sign in with the password. changed: the reason is gone.',
    ),
  summary: text.describe('The cause in one sentence, with what the mail server said.'),
  advice: text.describe('What to do next.'),
  id: text,
  username: text,
  email: optional(text),
  email_verified: z.boolean(),
  disabled: z.boolean(),
  has_password: z.boolean(),
  oauth_sessions_ended_at: optional(
    time.describe('Grants, codes and tokens from then or before are dead.'),
  ),
  idp_sessions_ended_at: optional(time.describe('Sessions from then or before are dead.')),
  clients: optional(
    object(
      'The clients of the last end of sessions, by what became of them. Left out if there are none.',
      {
        ended_at: time,
        told: count.describe('They signed the person out.'),
        waiting: count.describe('They will be told.'),
        failed: count.describe('They were not told, and nobody tries again. See the hints.'),
        untold: count.describe('They cannot be told: they have no `backchannel_logout_uri`.'),
      },
    ),
  ),
  hints: z
    .array(text)
    .describe('Why this account may get no mail, or is signed in still, and what to do.'),
  links: z.array(Link).describe('Newest first.'),
  mails: z.array(MailJob).describe('Newest first.'),
  events: z.array(AuditEvent).describe('Newest first.'),
})

export type Accepted = z.infer<typeof Accepted>
export const Accepted = object('A mail was asked for.', {
  mail_id: text.describe('To ask for its outcome.'),
})

export type MailOutcome = z.infer<typeof MailOutcome>
export const MailOutcome = object('What became of a mail that was asked for.', {
  mail_id: text,
  state: z
    .enum(['waiting', 'sent', 'ended', 'dead', 'unknown'])
    .describe(
      'ended: there is no mail, see reason. dead: it could not be sent. unknown: there is no record of this request.',
    ),
  reason: optional(text),
  attempts: optional(count),
  next_attempt_at: optional(time),
  sent_at: optional(time),
})

export type MailRecord = z.infer<typeof MailRecord>
export const MailRecord = MailOutcome.extend({
  mail: optional(MailJob.describe('While it waits, or is a dead letter.')),
  message_id: optional(text.describe('Of the mail that was sent.')),
  queue_id: optional(text.describe('What the mail server calls it.')),
  history: z.array(AuditEvent).describe('What was recorded of it, oldest first.'),
}).describe('All that is known of a mail that was asked for.')

export type Verification = z.infer<typeof Verification>
export const Verification = object('What became of the address of an account.', {
  email: text,
  changed: z.boolean().describe('false: it was in this state before.'),
})

export type EndedSessions = z.infer<typeof EndedSessions>
export const EndedSessions = object(
  'How many records were deleted, and which clients are told. A number is left out if the adapter cannot tell it.',
  {
    oauth: optional(count.describe('Grants, codes and tokens.')),
    idp: optional(count.describe('Sessions and login results.')),
    clients: optional(
      object(
        'Clients that the account was signed in to. Left out if the provider tells no clients.',
        {
          told: count.describe('They are told to sign the person out.'),
          untold: count.describe('They cannot be told. Sign the person out there.'),
        },
      ),
    ),
  },
)

export type AccountId = z.infer<typeof AccountId>
export const AccountId = object('One account by its id. The user may be deleted already.', {
  id: given,
})

export type ForgottenAccount = z.infer<typeof ForgottenAccount>
export const ForgottenAccount = object('How many records of the account were removed.', {
  mails: count,
  reset_links: count,
  verification_links: count,
  invitation_links: count,
  not_me_links: count,
  waiting_logins: count,
  client_logouts: count,
  events: count,
  under_way: count.describe(
    'Running resets, mails that are being sent, and clients that are still to be told: not removed yet. Try again in a minute; clients may take a day.',
  ),
})

export type Outbox = z.infer<typeof Outbox>
export const Outbox = object('Mails, newest request first.', { mails: z.array(MailJob) })

export type MailChoice = z.infer<typeof MailChoice>
export const MailChoice = object('One mail by its id, or all dead letters.', {
  id: optional(given),
  all_dead: optional(flag),
  before: optional(
    given.describe('Only for retry with `all_dead`: dead letters requested before this time.'),
  ),
})

export type MailsChanged = z.infer<typeof MailsChanged>
export const MailsChanged = object('How many mails were changed.', {
  changed: count,
  more_before: optional(time.describe('There are more: ask again with this `before`.')),
})

export type AuditLog = z.infer<typeof AuditLog>
export const AuditLog = object('Events, the last recorded one first.', {
  events: z.array(AuditEvent),
})

export type LinkQuery = z.infer<typeof LinkQuery>
export const LinkQuery = object('A link from a mail. It stays usable.', { link: given })

export type LinkExplanation = z.infer<typeof LinkExplanation>
export const LinkExplanation = object('What a link is, and what became of it.', {
  kind: optional(KIND),
  state: z
    .enum(['live', 'used', 'superseded', 'expired', 'void', 'altered', 'unknown', 'not_a_link'])
    .describe(
      'void: the account changed since; altered: its parameters are not those that were signed.',
    ),
  summary: text.describe('One sentence for the person who asks.'),
  advice: text.describe('What to do.'),
  signature: optional(z.enum(['valid', 'invalid', 'missing']).describe('Of a verification link.')),
  altered: z
    .array(text)
    .describe('Names of the parameters that were changed after the mail was sent.'),
  account_id: optional(text),
  client_id: optional(text),
  created_at: optional(time),
  expires_at: optional(time),
  used_at: optional(time),
  invalidated_at: optional(time),
  completed_at: optional(time),
  mail_id: optional(text),
  history: z.array(AuditEvent).describe('What was recorded since it was made, oldest first.'),
})

export type KeysRotation = z.infer<typeof KeysRotation>
export const KeysRotation = object(
  'All secrets are now encrypted with the first key of the ring.',
  {
    resealed: z.array(text).describe('Settings that another key had encrypted.'),
    unreadable: z
      .array(text)
      .describe('Settings that no key of the ring decrypts: set them again.'),
    keys: count.describe('How many keys the ring has.'),
    old_keys_needed_until: optional(
      time.describe('Until this time, verification links may need the other keys of the ring.'),
    ),
  },
)

const LIMIT = wholeNumber(1, 1000).default(50).describe('At most this many.')
const DRY_RUN = flag
  .default(false)
  .describe('Checks everything and changes nothing. The answer shows the result.')

export interface Operation {
  /** Method, and path below that of the API. */
  route: `${'GET' | 'PUT' | 'POST'} /${string}`
  /** What the token must have. */
  scope: AdminScope
  summary: string
  query?: z.ZodObject
  body?: z.ZodType
  answer: z.ZodType
  status?: 200 | 202
  /** Whether it answers an ETag, or honours `If-Match`. */
  etag?: true
}

/** By the name of the method of `AdminClient`. */
export const operations = {
  getSettings: {
    route: 'GET /settings',
    scope: 'account-flows:read',
    summary: 'The settings in force.',
    answer: SettingsInForce,
    etag: true,
  },
  settingsHistory: {
    route: 'GET /settings/history',
    scope: 'account-flows:read',
    summary: 'The last 20 versions of the settings: who changed what.',
    answer: SettingsHistory,
    etag: true,
  },
  putSettings: {
    route: 'PUT /settings',
    scope: 'account-flows:settings',
    summary: 'Changes settings: all keys are checked, then all are applied, or none.',
    query: z.strictObject({
      unset: optional(
        z
          .array(given, TEXT)
          .describe('Name of a setting to unset in the same step; may be repeated.'),
      ),
      dry_run: DRY_RUN,
    }),
    body: Settings,
    answer: SettingsInForce,
    etag: true,
  },
  unsetSettings: {
    route: 'POST /settings/unset',
    scope: 'account-flows:settings',
    summary: 'Sets settings back to their defaults, or to no value if there is no default.',
    query: z.strictObject({
      key: z.array(given, TEXT).describe('Name of a setting; may be repeated.'),
      dry_run: DRY_RUN,
    }),
    answer: SettingsInForce,
    etag: true,
  },
  testMail: {
    route: 'POST /mail/test',
    scope: 'account-flows:settings',
    summary: 'Sends a test mail now, and reports each step.',
    body: MailTest,
    answer: CheckReport,
  },
  previewMail: {
    route: 'GET /mail/preview',
    scope: 'account-flows:read',
    summary: 'Renders a mail.',
    query: z.strictObject({
      template: oneOf(mailTemplates).describe('Which mail.'),
      locale: given.default('en').describe('In which language.'),
    }),
    answer: MailPreview,
  },
  mailOutcome: {
    route: 'GET /mail/outcome',
    scope: 'account-flows:read',
    summary: 'What became of a mail that was asked for.',
    query: z.strictObject({ mail_id: given.describe('From `Accepted`.') }),
    answer: MailOutcome,
  },
  runDoctor: {
    route: 'POST /doctor',
    scope: 'account-flows:support',
    summary: 'Checks keys, database, clock, base URL and mail server, from the server itself.',
    body: DoctorRequest,
    answer: CheckReport,
  },
  userStatus: {
    route: 'POST /users/status',
    scope: 'account-flows:read',
    summary:
      'An account, its links and mails, and why it got no mail. Also by an unverified address, if the user store supports it. Audited.',
    body: AccountQuery,
    answer: UserStatus,
  },
  sendReset: {
    route: 'POST /users/send-reset',
    scope: 'account-flows:support',
    summary: 'Requests a reset link for the account. Audited.',
    body: AccountQuery,
    answer: Accepted,
    status: 202,
  },
  inviteUser: {
    route: 'POST /users/invite',
    scope: 'account-flows:support',
    summary:
      'Asks for an invitation of an account without a password, to its address. Found by an unverified address too, where the host can. Audited.',
    body: AccountQuery,
    answer: Accepted,
    status: 202,
  },
  sendVerification: {
    route: 'POST /users/send-verification',
    scope: 'account-flows:support',
    summary: 'Requests a verification link for the account. Audited.',
    body: AccountQuery,
    answer: Accepted,
    status: 202,
  },
  endSessions: {
    route: 'POST /users/end-sessions',
    scope: 'account-flows:support',
    summary:
      'Ends all sessions, grants and tokens of the account, and voids every link mailed to it. Audited.',
    body: AccountQuery,
    answer: EndedSessions,
  },
  verifyUser: {
    route: 'POST /users/verify',
    scope: 'account-flows:support',
    summary: 'Makes the address of an account verified, without a mail. Audited.',
    body: AccountQuery,
    answer: Verification,
  },
  unverifyUser: {
    route: 'POST /users/unverify',
    scope: 'account-flows:support',
    summary:
      'Makes the address of an account unverified, if the user store supports it. Sessions and links stay. Audited.',
    body: AccountQuery,
    answer: Verification,
  },
  forgetUser: {
    route: 'POST /users/forget',
    scope: 'account-flows:support',
    summary:
      'Erases the records about an account: mails, links, waiting logins, events. Actions of admins stay, without the id. Audited, without the id.',
    body: AccountId,
    answer: ForgottenAccount,
  },
  listOutbox: {
    route: 'GET /outbox',
    scope: 'account-flows:read',
    summary: 'Mails that wait, and dead letters.',
    query: z.strictObject({
      state: optional(oneOf(['waiting', 'dead']).describe('Both by default.')),
      account_id: optional(given.describe('Of one account.')),
      requested_from: optional(givenTime.describe('Only what was requested then or later.')),
      limit: LIMIT,
    }),
    answer: Outbox,
  },
  showMail: {
    route: 'GET /outbox/mail',
    scope: 'account-flows:read',
    summary: 'All about one mail: its outcome, each attempt, its ids.',
    query: z.strictObject({ mail_id: given.describe('From `Accepted` or `MailJob`.') }),
    answer: MailRecord,
  },
  retryMails: {
    route: 'POST /outbox/retry',
    scope: 'account-flows:support',
    summary: 'Sends a waiting mail now, or tries a dead letter again. Audited.',
    body: MailChoice,
    answer: MailsChanged,
  },
  purgeMails: {
    route: 'POST /outbox/purge',
    scope: 'account-flows:support',
    summary: 'Removes a waiting mail, or dead letters. Audited.',
    body: MailChoice,
    answer: MailsChanged,
  },
  listAudit: {
    route: 'GET /audit',
    scope: 'account-flows:read',
    summary: 'Events of the audit log.',
    query: z.strictObject({
      account_id: optional(given.describe('Of one account.')),
      type: optional(
        z
          .array(oneOf(AUDIT_EVENT_TYPES), `one of ${AUDIT_EVENT_TYPES.join(', ')}`)
          .describe('Type of event; may be repeated.'),
      ),
      recorded_from: optional(givenTime.describe('Only what was recorded then or later.')),
      limit: LIMIT,
    }),
    answer: AuditLog,
  },
  explainLink: {
    route: 'POST /links/explain',
    scope: 'account-flows:read',
    summary: 'What a link is, and what happened to it. The link stays usable. Audited.',
    body: LinkQuery,
    answer: LinkExplanation,
  },
  rotateKeys: {
    route: 'POST /keys/rotate',
    scope: 'account-flows:settings',
    summary: 'Encrypts the stored secrets with the first key of the ring. Audited.',
    answer: KeysRotation,
  },
} as const satisfies Record<string, Operation>

type Described = typeof operations
export type OperationName = keyof Described

/** What a client sends, and is answered. */
export type Operations = {
  [N in OperationName]: {
    route: Described[N]['route']
    query: Described[N] extends { query: infer Q extends z.ZodType } ? z.input<Q> : {}
    body: Described[N] extends { body: infer B extends z.ZodType } ? z.input<B> : undefined
    answer: z.infer<Described[N]['answer']>
  }
}

/** The query as it was read: with its defaults. */
export type ReadQuery<N extends OperationName> = Described[N] extends {
  query: infer Q extends z.ZodType
}
  ? z.output<Q>
  : {}
