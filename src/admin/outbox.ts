import * as z from 'zod'
import type { AccountFlowsStore } from '../records/index.ts'
import { recordAction } from './audit.ts'
import { MailJob, MailRecord, mailShape, readMail, recordOf } from './mail-record.ts'
import { createMailRetry, type RetryOutcome } from './mail-retry.ts'
import { invalid, operation, refusal, type Problem } from './operation.ts'
import { count, flag, given, givenTime, limit, object, oneOf, optional, time } from './schema.ts'
import { usernamesOf } from './usernames.ts'

export type Outbox = z.infer<typeof Outbox>
export const Outbox = object('Mails, newest request first.', { mails: z.array(MailJob) })

export type MailChoice = z.infer<typeof MailChoice>
export const MailChoice = object('One mail by its id, or all dead letters.', {
  id: optional(given),
  all_dead: optional(flag),
  before: optional(
    given,
    'Only for retry with `all_dead`: dead letters requested before this time.',
  ),
})

export type MailsChanged = z.infer<typeof MailsChanged>
export const MailsChanged = object('How many mails were changed.', {
  changed: count,
  more_before: optional(time, 'There are more: ask again with this `before`.'),
})

/** Mails that wait, and mails that could not be sent. */
export const outboxOperations = {
  listOutbox: operation({
    route: 'GET /outbox',
    scope: 'account-flows:read',
    summary: 'Mails that wait, and dead letters.',
    query: z.strictObject({
      state: optional(oneOf(['waiting', 'dead']), 'Both by default.'),
      account_id: optional(given, 'Of one account.'),
      requested_from: optional(givenTime, 'Only what was requested then or later.'),
      limit,
    }),
    answer: Outbox,
    async run({ query }, { store, users, clock }) {
      const { state, account_id: accountId, requested_from: requestedFrom, limit } = query
      const asked = { state, accountId, requestedFrom, limit }
      const jobs = await store.outbox.list(asked, clock.now())
      const nameOf = await usernamesOf(users, jobs)
      return { answer: { mails: jobs.map((job) => mailShape(job, nameOf)) } }
    },
  }),

  showMail: operation({
    route: 'GET /outbox/mail',
    scope: 'account-flows:read',
    summary: 'All about one mail: its outcome, each attempt, its ids.',
    query: z.strictObject({ mail_id: given.describe('From `Accepted` or `MailJob`.') }),
    answer: MailRecord,
    async run({ query }, { store, users, clock }) {
      const kept = await readMail(store, query.mail_id, clock.now())
      return { answer: recordOf(kept, await usernamesOf(users, [kept])) }
    },
  }),

  retryMails: operation({
    route: 'POST /outbox/retry',
    scope: 'account-flows:support',
    summary: 'Sends a waiting mail now, or tries a dead letter again. Audited.',
    body: MailChoice,
    answer: MailsChanged,
    async run(request, parts) {
      const { body } = request
      const before = body.before === undefined ? undefined : new Date(body.before)
      if (!isOneChoice(body) || Number.isNaN(before?.getTime())) return INVALID
      const { store, wake, clock } = parts
      if (!(await isThere(store, body.id, clock.now()))) return REFUSALS.not_found
      await recordAction(parts, request, 'outbox_retry', detailsOf(body.id))
      const retry = createMailRetry({ store, wake, now: clock.now })
      if (body.id === undefined) {
        const { changed, moreBefore } = await retry.allDead(before)
        return { answer: { changed, more_before: moreBefore } }
      }
      const outcome = await retry.one(body.id)
      return outcome === 'revived' ? { answer: { changed: 1 } } : REFUSALS[outcome]
    },
  }),

  purgeMails: operation({
    route: 'POST /outbox/purge',
    scope: 'account-flows:support',
    summary: 'Removes a waiting mail, or dead letters. Audited.',
    body: MailChoice,
    answer: MailsChanged,
    async run(request, parts) {
      const { id, before } = request.body
      if (!isOneChoice(request.body) || before !== undefined) return INVALID
      const { store, clock } = parts
      if (!(await isThere(store, id, clock.now()))) return REFUSALS.not_found
      await recordAction(parts, request, 'outbox_purge', detailsOf(id))
      const changed = await store.outbox.discard(id === undefined ? 'dead' : { id }, clock.now())
      if (id === undefined || changed === 1) return { answer: { changed } }
      return (await isThere(store, id, clock.now())) ? REFUSALS.held : REFUSALS.not_found
    },
  }),
}

/** Not both, and not neither. */
const isOneChoice = (choice: MailChoice) => (choice.all_dead === true) === (choice.id === undefined)

// What is no mail may be anything that was pasted by mistake, such as a link: it is not recorded.
const isThere = async ({ outbox }: AccountFlowsStore, id: string | undefined, at: Date) =>
  id === undefined || (await outbox.list({ id, limit: 1 }, at)).length === 1

const detailsOf = (id: string | undefined) => ({ details: { mail_id: id ?? 'all dead letters' } })

const INVALID = invalid('Name one mail by id, or set all_dead to true.', {
  key: 'id',
  expected: 'either id, or all_dead: true',
  got: 'something else',
})

const REFUSALS: Record<Exclude<RetryOutcome, 'revived'>, Problem> = {
  superseded: refusal(
    409,
    'superseded',
    'The account asked again later: this mail would end the newer link. Send another one with the user commands.',
  ),
  held: refusal(409, 'held', 'This mail is being sent now. Look again in a moment.'),
  not_found: refusal(
    404,
    'unknown_mail',
    'There is no such mail in the outbox: it was sent, or ended without being sent.',
  ),
  no_account: refusal(
    409,
    'no_account',
    'The account of this mail is not known any more. Ask the person to request a new mail.',
  ),
}
