import type { AccountFlowsStore, MailJobStatus } from '../ports/index.ts'
import { isLinkKind, MAIL_KINDS } from '../ports/mail-kinds.ts'
import { recordAction } from './audit.ts'
import { tokensOf } from './link-state.ts'
import { mailShape } from './mails.ts'
import { namesOf } from './names.ts'
import type { AdminEndpoints, AdminParts, AdminRefusal, AdminRequest } from './parts.ts'

/** Mails that wait, and mails that could not be sent. */
export function outboxOperations(parts: AdminParts) {
  const {
    wake,
    clock: { now },
    store,
  } = parts
  const { outbox } = store
  const retry = createMailRetry({ store, wake, now })

  // What is no mail may be anything that was pasted by mistake, such as a link: it is not recorded.
  const isThere = async (id: string | undefined) =>
    id === undefined || (await outbox.list({ id, limit: 1 }, now())).length === 1

  return {
    async listOutbox({ query: { state, account_id: accountId, limit } }) {
      const jobs = await outbox.list(
        { ...(state && { state }), ...(accountId !== undefined && { accountId }), limit },
        now(),
      )
      const nameOf = await namesOf(
        parts.users,
        jobs.map(({ accountId }) => accountId),
      )
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

/** `superseded`: the account asked again since, and a mail for this request would end the newer link. */
type RetryOutcome = 'revived' | 'superseded' | 'held' | 'no_account' | 'not_found'

interface MailRetry {
  one(id: string): Promise<RetryOutcome>
  /**
   * Of each account and kind the newest dead letter; so many at once that a request is answered in time.
   *
   * @param before - only what was requested earlier.
   * @returns `moreBefore`: there may be further ones, from before this time.
   */
  allDead(before?: Date): Promise<{ changed: number; moreBefore?: Date }>
}

interface MailRetryPorts {
  store: AccountFlowsStore
  /** Tells the workers that a mail is due. */
  wake(at: Date): void
  now(): Date
}

const LIFE_MS = 24 * 3_600_000
const MOST_AT_ONCE = 300
/** Of one account; it has few. */
const MOST_OF_ACCOUNT = 100

/** Has mails sent that wait, or that nobody would try to send again. */
export function createMailRetry({ store, wake, now }: MailRetryPorts): MailRetry {
  const { outbox } = store

  async function revive(id: string): Promise<RetryOutcome> {
    const at = now()
    const outcome = await outbox.revive(id, at, new Date(at.getTime() + LIFE_MS))
    if (outcome === 'revived') wake(at)
    return outcome
  }

  // Of some kinds only the newest link works (3.1); others live side by side.
  async function isSuperseded({ id, kind, state, accountId, requestedAt }: MailJobStatus) {
    if (state !== 'dead' || !isLinkKind(kind) || !MAIL_KINDS[kind].newestOnly) return false
    if (accountId === undefined || requestedAt === undefined) return false
    const tokens = await tokensOf(store, kind).ofUser(accountId, MOST_OF_ACCOUNT)
    if (tokens.some((token) => token.mailJobId !== id && token.createdAt > requestedAt)) return true
    const others = await outbox.list({ accountId, limit: MOST_OF_ACCOUNT }, now())
    return others.some((job) => job.kind === kind && (job.requestedAt ?? 0) > requestedAt)
  }

  return {
    async one(id) {
      const [job] = await outbox.list({ id, limit: 1 }, now())
      if (!job) return 'not_found'
      return (await isSuperseded(job)) ? 'superseded' : revive(id)
    },

    async allDead(requestedBefore) {
      const letters = await outbox.list(
        { state: 'dead', limit: MOST_AT_ONCE, ...(requestedBefore && { requestedBefore }) },
        now(),
      )
      const settled = new Set<string>()
      let changed = 0
      for (const letter of letters) {
        const { id, kind, accountId } = letter
        const whose = JSON.stringify([accountId ?? id, kind])
        if (settled.has(whose) || (await isSuperseded(letter))) continue
        settled.add(whose)
        if ((await revive(id)) === 'revived') changed += 1
      }
      const oldest = letters.length === MOST_AT_ONCE ? letters.at(-1)?.requestedAt : undefined
      return { changed, ...(oldest && { moreBefore: oldest }) }
    },
  }
}
