import * as z from 'zod'
import { MAIL_KINDS, mailKinds, mailTemplates } from '../contract/mail-kinds.ts'
import { isMailAddress } from '../settings/addresses.ts'
import { givenFor } from '../settings/change.ts'
import type { RenderedMail } from '../views/index.ts'
import { recordAction } from './audit.ts'
import { CheckReport, reportOf, type Check } from './checks.ts'
import { MailOutcome, outcomeOf, readMail } from './mail-record.ts'
import { invalid, invalidSettings, notAnAddress, operation, type AdminParts } from './operation.ts'
import { given, object, oneOf, optional, text } from './schema.ts'

export type MailTest = z.infer<typeof MailTest>
export const MailTest = object('Where a test mail goes.', {
  to: given.describe('One plain e-mail address.'),
  settings: optional(
    z
      .record(z.string(), z.string())
      .describe('Settings to try instead of those in force. They are not stored.'),
  ),
})

export type MailPreview = z.infer<typeof MailPreview>
export const MailPreview = object(
  'A mail as it would be sent, with sample values and a link that does not work.',
  { subject: text, text, html: text },
)

export const mailOperations = {
  testMail: operation({
    route: 'POST /mail/test',
    scope: 'account-flows:settings',
    summary: 'Sends a test mail now, and reports each step.',
    body: MailTest,
    answer: CheckReport,
    async run(request, parts) {
      const { to, settings: wanted = {} } = request.body
      if (!isMailAddress(to)) return notAnAddress(to, 'sent')
      const { settingsKeeper, views, clock } = parts
      await settingsKeeper.refresh()
      const tried = settingsKeeper.tried(wanted)
      if (Array.isArray(tried)) return invalidSettings('sent', tried)
      const keys = Object.keys(wanted)
      const about = keys.length > 0 ? { details: { keys } } : {}
      await recordAction(parts, request, 'mail_test', about)
      const mail = views.mail('test', { username: '', link: '', at: clock.now() })
      const checks = await parts.checkMail(tried.settings, { to, mail })
      return reportOf(checks.map((check) => withSecretsLeft(check, tried.secretsLeft)))
    },
  }),

  previewMail: operation({
    route: 'GET /mail/preview',
    scope: 'account-flows:read',
    summary: 'Renders a mail.',
    query: z.strictObject({
      template: oneOf(mailTemplates).describe('Which mail.'),
      locale: given.default('en').describe('In which language.'),
    }),
    answer: MailPreview,
    async run({ query }, parts) {
      const mail = previewMail(parts, query)
      if (mail) return mail
      const expected = `one of ${parts.views.locales.join(', ')}`
      return invalid('There is no such locale.', { key: 'locale', expected, got: 'another locale' })
    },
  }),

  mailOutcome: operation({
    route: 'GET /mail/outcome',
    scope: 'account-flows:read',
    summary: 'What became of a mail that was asked for.',
    query: z.strictObject({ mail_id: given.describe('From `Accepted`.') }),
    answer: MailOutcome,
    async run({ query }, { store, clock }) {
      return outcomeOf(await readMail(store, query.mail_id, clock.now()))
    },
  }),
}

/** Whoever reads that a secret is missing would set the one that is stored. */
function withSecretsLeft(check: Check, [secret, ...more]: string[]): Check {
  if (secret === undefined || check.step !== 'configuration' || check.status !== 'warning')
    return check
  const names = [secret, ...more].join(' and ')
  return {
    ...check,
    message: `The stored ${names} ${more.length > 0 ? 'belong' : 'belongs'} to another ${givenFor(secret).join(' or ')} and stays there: no login was tried.`,
    advice: `Give it again: --set ${secret} asks for it.`,
  }
}

const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'

type PreviewParts = Pick<AdminParts, 'views' | 'oauthUrl' | 'settings' | 'clock'>

/** A mail as it would leave, with made-up values and no token. `undefined`: there is no such mail or locale. */
export function previewMail(
  { views, oauthUrl, settings, clock }: PreviewParts,
  { template: name, locale }: { template: string; locale: string },
): RenderedMail | undefined {
  const kind = mailKinds.find((each) => MAIL_KINDS[each].template === name)
  if (!kind || !views.locales.includes(locale)) return undefined
  const { template, page, link } = MAIL_KINDS[kind]
  const locals = {
    username: 'ann',
    link: `${oauthUrl}${page}`,
    notMe: `${oauthUrl}/not-me`,
    at: clock.now(),
    ...(link && { lifetimeMs: settings()[link.lifetime] }),
    clientName: 'Example App',
    userAgent: BROWSER,
  }
  return views.mail(template, locals, { asked: locale })
}
