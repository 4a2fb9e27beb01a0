import { recordAction } from './audit.ts'
import { createMailRetry, type RetryOutcome } from './mail-retry.ts'
import { mailShape } from './mails.ts'
import { usernamesOf } from './usernames.ts'
import type { AdminEndpoints, AdminParts, AdminRefusal, AdminRequest } from './parts.ts'

/** Mails that wait, and mails that could not be sent. */
export function outboxOperations(parts: AdminParts) {
  const { store, wake } = parts
  const { now } = parts.clock
  const { outbox } = store
  const retry = createMailRetry({ store, wake, now })

  // What is no mail may be anything that was pasted by mistake, such as a link: it is not recorded.
  const isThere = async (id: string | undefined) =>
    id === undefined || (await outbox.list({ id, limit: 1 }, now())).length === 1

  return {
    async listOutbox({ query }) {
      const { state, account_id: accountId, requested_from: from, limit } = query
      const jobs = await outbox.list(
        {
          ...(state && { state }),
          ...(accountId !== undefined && { accountId }),
          ...(from !== undefined && { requestedFrom: new Date(from) }),
          limit,
        },
        now(),
      )
      const nameOf = await usernamesOf(parts.users, jobs)
      return { answer: { mails: jobs.map((job) => mailShape(job, nameOf)) } }
    },

    async retryMails(request) {
      const { id, isAll } = choiceOf(request)
      const before = timeOf(request.body.before)
      if ((!isAll && id === undefined) || before === 'none') return INVALID
      if (!(await isThere(id))) return REFUSALS.not_found
      await recordAction(parts, request, 'outbox_retry', detailsOf(id))
      if (id === undefined) {
        const { changed, moreBefore } = await retry.allDead(before)
        return { answer: { changed, more_before: moreBefore } }
      }
      const outcome = await retry.one(id)
      return outcome === 'revived' ? { answer: { changed: 1 } } : REFUSALS[outcome]
    },

    async purgeMails(request) {
      const { id, isAll } = choiceOf(request)
      if ((!isAll && id === undefined) || request.body.before !== undefined) return INVALID
      if (!(await isThere(id))) return REFUSALS.not_found
      await recordAction(parts, request, 'outbox_purge', detailsOf(id))
      const changed = await outbox.discard(id === undefined ? 'dead' : { id }, now())
      if (id === undefined || changed === 1) return { answer: { changed } }
      return (await isThere(id)) ? REFUSALS.held : REFUSALS.not_found
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
      'The account asked again later: this mail would end the newer link. Send another one with the user commands.',
  },
  held: {
    status: 409,
    code: 'held',
    title: 'This mail is being sent now. Look again in a moment.',
  },
  not_found: {
    status: 404,
    code: 'unknown_mail',
    title: 'There is no such mail in the outbox: it was sent, or ended without being sent.',
  },
  no_account: {
    status: 409,
    code: 'no_account',
    title: 'The account of this mail is not known any more. Ask the person to request a new mail.',
  },
}
