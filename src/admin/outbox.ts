import * as z from 'zod'
import type { MailJobStatus } from '../store/index.ts'
import { recordAction } from './audit.ts'
import { MailJob, MailRecord, mailShape, readMail, recordOf } from './mail-record.ts'
import { retryAllDead, retryMail, type RetryOutcome } from './mail-retry.ts'
import { invalid, operation, refusal, type AdminParts, type Problem } from './operation.ts'
import {
  count,
  flag,
  given,
  givenTime,
  limit,
  object,
  oneOf,
  optional,
  time,
  wireOf,
} from './schema.ts'
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
      return { mails: jobs.map((job) => mailShape(job, nameOf)) }
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
      return recordOf(kept, await usernamesOf(users, [kept]))
    },
  }),

  retryMails: operation({
    route: 'POST /outbox/retry',
    scope: 'account-flows:support',
    summary: 'Sends a waiting mail now, or tries a dead letter again. Audited.',
    body: MailChoice,
    answer: MailsChanged,
    async run(request, parts) {
      const { before } = request.body
      const requestedBefore = before === undefined ? undefined : new Date(before)
      if (Number.isNaN(requestedBefore?.getTime())) return INVALID
      const chosen = await chosenOf(parts, request.body)
      if ('code' in chosen) return chosen
      await recordAction(parts, request, 'outbox_retry', detailsOf(chosen))
      if (!chosen.job) return wireOf(MailsChanged, await retryAllDead(parts, requestedBefore))
      const outcome = await retryMail(parts, chosen.job)
      return outcome === 'revived' ? { changed: 1 } : refused(outcome)
    },
  }),

  purgeMails: operation({
    route: 'POST /outbox/purge',
    scope: 'account-flows:support',
    summary: 'Removes a waiting mail, or dead letters. Audited.',
    body: MailChoice,
    answer: MailsChanged,
    async run(request, parts) {
      if (request.body.before !== undefined) return INVALID
      const chosen = await chosenOf(parts, request.body)
      if ('code' in chosen) return chosen
      await recordAction(parts, request, 'outbox_purge', detailsOf(chosen))
      const changed = await parts.store.outbox.discard(chosen.job ?? 'dead', parts.clock.now())
      if (!chosen.job || changed === 1) return { changed }
      const left = await chosenOf(parts, request.body)
      return 'code' in left ? left : refused('held')
    },
  }),
}

interface Chosen {
  /** `undefined`: all dead letters. */
  job?: MailJobStatus
}

/** What is no mail may be anything that was pasted by mistake, such as a link: it is not recorded. */
async function chosenOf(
  { store, clock }: AdminParts,
  { id, all_dead: isAll = false }: MailChoice,
): Promise<Chosen | Problem> {
  if (isAll !== (id === undefined)) return INVALID
  if (id === undefined) return {}
  const [job] = await store.outbox.list({ id, limit: 1 }, clock.now())
  return job ? { job } : refused('not_found')
}

const detailsOf = ({ job }: Chosen) => ({ details: { mail_id: job?.id ?? 'all dead letters' } })

const INVALID = invalid('Name one mail by id, or set all_dead to true.', {
  key: 'id',
  expected: 'either id, or all_dead: true',
  got: 'something else',
})

const WHY = {
  superseded:
    'The account asked again later: this mail would end the newer link. Send another one with the user commands.',
  held: 'This mail is being sent now. Look again in a moment.',
  not_found: 'There is no such mail in the outbox: it was sent, or ended without being sent.',
  no_account:
    'The account of this mail is not known any more. Ask the person to request a new mail.',
} satisfies Record<Exclude<RetryOutcome, 'revived'>, string>

const refused = (why: keyof typeof WHY) =>
  why === 'not_found' ? refusal(404, 'unknown_mail', WHY[why]) : refusal(409, why, WHY[why])
