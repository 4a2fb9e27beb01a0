import * as z from 'zod'
import { linkKinds, MAIL_KINDS, mailTemplates } from '../contract/mail-kinds.ts'
import { isMailAddress } from '../settings/addresses.ts'
import { givenFor } from '../settings/secrets.ts'
import { AuditEvent, usernamesFor } from './audit.ts'
import { CheckReport, reportOf, type Check } from './checks.ts'
import { invalid, invalidSettings, notAnAddress, operation, type AdminParts } from './operation.ts'
import { count, given, list, object, oneOf, optional, text, time, wireOf } from './schema.ts'

export type MailTest = z.infer<typeof MailTest>
export const MailTest = object('Where a test mail goes.', {
  to: given.describe('One plain e-mail address.'),
  settings: optional(
    z.record(text, text),
    'Settings to try instead of those in force. They are not stored.',
  ),
})

export type MailPreview = z.infer<typeof MailPreview>
export const MailPreview = object(
  'A mail as it would be sent, with sample values and a link that does not work.',
  { subject: text, text, html: text },
)

export type MailJob = z.infer<typeof MailJob>
export const MailJob = object('A mail that waits, or a dead letter.', {
  id: text,
  kind: text,
  state: z.enum(['waiting', 'dead']),
  account_id: optional(text),
  username: optional(text, 'Of the account, as it is now.'),
  requested_at: optional(time),
  next_attempt_at: optional(time),
  expires_at: optional(time),
  attempts: count,
  reason: optional(text, 'Why the last attempt failed, or why there is no other attempt.'),
  is_held: z.boolean().describe('Whether a worker has it.'),
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
  mail: optional(MailJob, 'While it waits, or is a dead letter.'),
  message_id: optional(text, 'Of the mail that was sent.'),
  queue_id: optional(text, 'What the mail server calls it.'),
  history: list(AuditEvent, 'What was recorded of it, oldest first.'),
}).describe('All that is known of a mail that was asked for.')

export const mailOperations = {
  testMail: operation('POST /mail/test', 'account-flows:settings', {
    summary: 'Sends a test mail now, and reports each step.',
    body: MailTest,
    answer: CheckReport,
    async run({ body, record }, { settingsKeeper, mail: { views, check }, clock }) {
      const { to, settings: wanted = {} } = body
      if (!isMailAddress(to)) return notAnAddress(to, 'sent')
      await settingsKeeper.refresh()
      const tried = settingsKeeper.tried(wanted)
      if (Array.isArray(tried)) return invalidSettings('sent', tried)
      const keys = Object.keys(wanted)
      await record('mail_test', keys.length > 0 ? { details: { keys } } : {})
      const mail = views.mail('test', { username: '', link: '', at: clock.now() })
      const checks = await check(tried.settings, { to, mail })
      return reportOf(checks.map((check) => withSecretsLeft(check, tried.secretsLeft)))
    },
  }),

  previewMail: operation('GET /mail/preview', 'account-flows:read', {
    summary: 'Renders a mail.',
    query: z.strictObject({
      template: oneOf(mailTemplates).describe('Which mail.'),
      locale: given.default('en').describe('In which language.'),
    }),
    answer: MailPreview,
    async run({ query: { template, locale } }, { mail: { views }, options, settings, clock }) {
      const expected = `one of ${views.locales.join(', ')}`
      const problem = { key: 'locale', expected, got: 'another locale' }
      if (!views.locales.includes(locale)) return invalid('There is no such locale.', problem)
      const kind = Object.values(MAIL_KINDS).find((each) => each.template === template)
      const { page, link } = kind ?? {}
      const locals = {
        username: 'ann',
        at: clock.now(),
        clientName: 'Example App',
        userAgent: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
        ...(!kind && { signsInElsewhere: 'Google' }),
        ...(page === undefined
          ? { link: '' }
          : { link: `${options.oauthUrl}${page}`, notMe: `${options.oauthUrl}/not-me` }),
        ...(link && { lifetimeMs: settings()[link.lifetime] }),
      }
      return views.mail(template, locals, { asked: locale })
    },
  }),

  mailOutcome: operation('GET /mail/outcome', 'account-flows:read', {
    summary: 'What became of a mail that was asked for.',
    query: z.strictObject({ mail_id: given.describe('From `Accepted`.') }),
    answer: MailOutcome,
    async run({ query }, parts) {
      return outcomeOf(await readMail(parts, query.mail_id))
    },
  }),
}

export const showMail = operation('GET /outbox/mail', 'account-flows:read', {
  summary: 'All about one mail: its outcome, each attempt, its ids.',
  query: z.strictObject({ mail_id: given.describe('From `Accepted` or `MailJob`.') }),
  answer: MailRecord,
  async run({ query }, parts) {
    const kept = await readMail(parts, query.mail_id)
    const { job, requested, sent, failures } = kept
    const events = [requested, ...failures.toReversed(), sent].flatMap((event) => event ?? [])
    const named = await usernamesFor(parts.users, [...events, ...(job ? [job] : [])])
    const textOf = (detail: unknown) => (typeof detail === 'string' ? detail : undefined)
    return {
      ...outcomeOf(kept),
      mail: job && wireOf(MailJob, named(job)),
      message_id: textOf(sent?.details?.['message_id']),
      queue_id: textOf(sent?.details?.['queue_id']),
      history: events.map((event) => wireOf(AuditEvent, named(event))),
    }
  },
})

/** If a stored secret belongs to another server, says so. Otherwise the admin would read that it is missing. */
function withSecretsLeft(check: Check, [secret, ...more]: string[]): Check {
  if (secret === undefined || check.step !== 'configuration' || check.status !== 'warning')
    return check
  const names = [secret, ...more].join(' and ')
  const message = `The stored ${names} ${more.length > 0 ? 'belong' : 'belongs'} to another ${givenFor(secret).join(' or ')} and stays there: no login was tried.`
  return { ...check, message, advice: `Give it again: --set ${secret} asks for it.` }
}

const FAILED = linkKinds.map((kind) => `${MAIL_KINDS[kind].flow}_mail_failed` as const)
/** More failures than one mail has in its life. */
const MAX_FAILURES = 1_000

/** All that is kept about a mail; failures newest first. The outbox is asked first: a job leaves it after its end is recorded. */
async function readMail({ store: { outbox, audit }, clock }: AdminParts, id: string) {
  const [job] = await outbox.list({ id, limit: 1 }, clock.now())
  const [[requested], [sent]] = await Promise.all([
    audit.list({ id: `requested:${id}`, limit: 1 }),
    audit.list({ id: `mail_sent:${id}`, limit: 1 }),
  ])
  const accountId = job?.accountId ?? requested?.accountId ?? sent?.accountId
  const asked = { accountId, types: FAILED, limit: MAX_FAILURES }
  const failed = accountId === undefined ? [] : await audit.list(asked)
  const failures = failed.filter((event) => event.id.startsWith(`mail_failed:${id}:`))
  return { id, job, requested, sent, failures }
}

type KeptMail = Awaited<ReturnType<typeof readMail>>

function outcomeOf({ id: mailId, job, sent, requested, failures }: KeptMail) {
  if (job) return wireOf(MailOutcome, { ...job, mailId })
  if (sent) return wireOf(MailOutcome, { mailId, state: 'sent', sentAt: sent.at })
  if (!requested) return wireOf(MailOutcome, { mailId, state: 'unknown' })
  // A dead letter that was retried may have ended for another reason than at first.
  const reason = failures[0]?.reason ?? requested.reason
  return wireOf(MailOutcome, { mailId, state: 'ended', reason })
}
