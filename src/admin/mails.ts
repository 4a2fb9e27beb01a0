import type { MailOutcome } from './mail-outcome.ts'
import type { MailRetry, RetryOutcome } from './mail-retry.ts'
import { isMailAddress } from '../settings/mail-address.ts'
import type { CheckMail, MailOutbox } from '../ports/index.ts'
import type { SettingsKeeper } from '../settings/settings.ts'
import type { RenderedMail } from '../views/index.ts'
import type { AuditAction } from './audit.ts'
import type { AdminEndpoints, AdminRefusal, AdminRequest } from './router.ts'
import { toMailJob, toMailOutcome, toReport } from './shapes.ts'

export interface AdminMailsParts {
  outbox: MailOutbox
  retry: MailRetry
  outcomeOf(mailId: string): Promise<MailOutcome>
  checkMail: CheckMail
  testMail(): RenderedMail
  /** `undefined`: there is no such locale. */
  previewOf(template: string, locale: string): RenderedMail | undefined
  locales(): string[]
  auditAction: AuditAction
  settings: Pick<SettingsKeeper, 'current' | 'refresh'>
  now(): Date
}

/** Mails that wait, mails that could not be sent, and mails to try the settings with. */
export function adminMails(parts: AdminMailsParts) {
  const { outbox, retry, auditAction, settings, now } = parts

  // What is no mail may be anything that was pasted by mistake, such as a link: it is not recorded.
  const isThere = async (id: string | undefined) =>
    id === undefined || (await outbox.status(id, now())) !== undefined

  return {
    async testMail(request) {
      const { to } = request.body
      if (!isMailAddress(to)) return notAnAddress(to)
      await auditAction(request, 'mail_test')
      await settings.refresh()
      const checks = await parts.checkMail(settings.current(), { to, mail: parts.testMail() })
      return { answer: toReport(checks) }
    },

    async previewMail({ query }) {
      const { template, locale = 'en' } = query
      const mail = parts.previewOf(template, locale)
      if (mail) return { answer: mail }
      const expected = `one of ${parts.locales().join(', ')}`
      const errors = [{ key: 'locale', expected, got: 'another locale' }]
      return { status: 400, code: 'invalid_request', title: 'There is no such locale.', errors }
    },

    async mailOutcome({ query }) {
      return { answer: toMailOutcome(query.mail_id, await parts.outcomeOf(query.mail_id)) }
    },

    async listOutbox({ query: { state, account_id: accountId, limit = 50 } }) {
      const jobs = await outbox.list(
        { ...(state && { state }), ...(accountId !== undefined && { accountId }), limit },
        now(),
      )
      return { answer: { mails: jobs.map(toMailJob) } }
    },

    async retryMails(request) {
      const { id, isAll } = choiceOf(request)
      const before = timeOf(request.body.before)
      if ((!isAll && id === undefined) || before === 'none') return INVALID
      if (!(await isThere(id))) return REFUSALS.not_found
      await auditAction(request, 'outbox_retry', detailsOf(id))
      if (id === undefined) {
        const { changed, moreBefore } = await retry.allDead(before)
        return { answer: { changed, ...(moreBefore && { more_before: moreBefore.toISOString() }) } }
      }
      const outcome = await retry.one(id)
      return outcome === 'revived' ? { answer: { changed: 1 } } : REFUSALS[outcome]
    },

    async purgeMails(request) {
      const { id, isAll } = choiceOf(request)
      if (!isAll && id === undefined) return INVALID
      if (!(await isThere(id))) return REFUSALS.not_found
      await auditAction(request, 'outbox_purge', detailsOf(id))
      if (id === undefined) return { answer: { changed: await outbox.discardDead() } }
      const outcome = await outbox.discard(id, now())
      return outcome === 'discarded' ? { answer: { changed: 1 } } : REFUSALS[outcome]
    },
  } satisfies Partial<AdminEndpoints>
}

/** One of both, or nothing. */
function choiceOf({ body }: AdminRequest<'retryMails' | 'purgeMails'>) {
  const isAll = body.all_dead === true
  return isAll === (body.id !== undefined) ? { isAll: false } : { isAll, id: body.id }
}

function timeOf(text: string | undefined): Date | undefined | 'none' {
  if (text === undefined) return undefined
  const time = new Date(text)
  return Number.isNaN(time.getTime()) ? 'none' : time
}

const detailsOf = (id: string | undefined) => ({ details: { mail_id: id ?? 'all dead letters' } })

const INVALID: AdminRefusal = {
  status: 400,
  code: 'invalid_request',
  title: 'Name one mail by id, or set all_dead to true.',
  errors: [{ key: 'id', expected: 'either id, or all_dead: true', got: 'something else' }],
}

const REFUSALS: Record<Exclude<RetryOutcome, 'revived'>, AdminRefusal> = {
  superseded: {
    status: 409,
    code: 'superseded',
    title:
      'The account asked again since: this mail would end the newer link. Use user send-reset.',
  },
  held: {
    status: 409,
    code: 'held',
    title: 'A worker has this mail, or is about to take it. Look again in a moment.',
  },
  not_found: {
    status: 404,
    code: 'unknown_mail',
    title: 'There is no such mail: it left, or ended without one.',
  },
  no_account: {
    status: 409,
    code: 'no_account',
    title: 'Nobody knows any more whom this mail was for. Have the person ask again.',
  },
}

function notAnAddress(to: string): AdminRefusal {
  const got = JSON.stringify(to).slice(0, 64)
  const errors = [{ key: 'to', expected: 'one plain e-mail address', got }]
  const title = 'Nothing was sent: this is not an e-mail address.'
  return { status: 400, code: 'invalid_request', title, errors }
}
