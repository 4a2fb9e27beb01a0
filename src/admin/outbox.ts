import * as z from 'zod'
import { retryAllDead, retryMail } from '../mail/retry.ts'
import { usernamesFor } from './audit.ts'
import { MailJob, showMail } from './mails.ts'
import { invalid, operation, refusal, type AdminParts, type AdminRequest } from './operation.ts'
import { flag, given, givenTime, limit, object, oneOf, optional, time, wireOf } from './schema.ts'

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
  changed: z.int().min(0),
  more_before: optional(time, 'There are more: ask again with this `before`.'),
})

export const outboxOperations = {
  listOutbox: operation('GET /outbox', 'account-flows:read', {
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
      const named = await usernamesFor(users, jobs)
      return { mails: jobs.map((job) => wireOf(MailJob, named(job))) }
    },
  }),

  showMail,

  retryMails: operation('POST /outbox/retry', 'account-flows:support', {
    summary: 'Sends a waiting mail now, or tries a dead letter again. Audited.',
    body: MailChoice,
    answer: MailsChanged,
    async run(request, parts) {
      const { before: given } = request.body
      const before = given === undefined ? undefined : new Date(given)
      if (Number.isNaN(before?.getTime())) return INVALID
      const chosen = await choose('outbox_retry', request, parts)
      if ('code' in chosen) return chosen
      if (!chosen.job) return wireOf(MailsChanged, await retryAllDead(parts, before))
      const outcome = await retryMail(parts, chosen.job)
      return outcome === 'revived' ? { changed: 1 } : refused(outcome)
    },
  }),

  purgeMails: operation('POST /outbox/purge', 'account-flows:support', {
    summary: 'Removes a waiting mail, or dead letters. Audited.',
    body: MailChoice,
    answer: MailsChanged,
    async run(request, parts) {
      if (request.body.before !== undefined) return INVALID
      const chosen = await choose('outbox_purge', request, parts)
      if ('code' in chosen) return chosen
      const { job } = chosen
      const { store, clock } = parts
      const changed = await store.outbox.discard(job ?? 'dead', clock.now())
      if (!job || changed === 1) return { changed }
      const [left] = await store.outbox.list({ id: job.id, limit: 1 }, clock.now())
      return refused(left ? 'held' : 'not_found')
    },
  }),
}

/** The named mail. `undefined`: all dead letters. Records only a mail that exists: other text may be pasted by mistake, such as a link. */
async function choose(
  action: string,
  { body: { id, all_dead: isAll = false }, record }: AdminRequest<{}, MailChoice>,
  { store, clock }: AdminParts,
) {
  if (isAll !== (id === undefined)) return INVALID
  const [job] = id === undefined ? [] : await store.outbox.list({ id, limit: 1 }, clock.now())
  if (id !== undefined && !job) return refused('not_found')
  await record(action, { details: { mail_id: job?.id ?? 'all dead letters' } })
  return { job }
}

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
}

const refused = (why: keyof typeof WHY) =>
  why === 'not_found' ? refusal(404, 'unknown_mail', WHY[why]) : refusal(409, why, WHY[why])
