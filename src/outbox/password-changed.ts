import type { ClaimedReset, MailOutbox } from '../ports/index.ts'
import { formQuery } from '../ports/carried-query.ts'
import { MAIL_KINDS } from '../ports/mail-kinds.ts'
import type { MailFlow } from './mail-flow.ts'
import type { MailParts } from './parts.ts'
import { localeOf } from './render.ts'
import { keptRequester } from './request.ts'

/** Whoever did not change the password wants to know, however late. */
const JOB_LIFE_MS = 24 * 3_600_000

/** Before the id of the end, which the apps are found by. */
const OF_END = 'changed:'

/** Asks for the mail that tells of a reset. Repeated, it asks once, while that mail did not leave. */
export function requestNotice(
  outbox: Pick<MailOutbox, 'add'>,
  { id, userId, email, carried, claimedBy }: ClaimedReset,
  now: Date,
): Promise<void> {
  return outbox.add({
    id: `${OF_END}${id}`,
    kind: 'password_changed',
    identifier: undefined,
    accountId: userId,
    pendingLoginId: undefined,
    // Where the link went: a thief may have changed the account's address by then.
    sendTo: email,
    carried,
    requester: keptRequester(claimedBy),
    notBefore: now,
    expiresAt: new Date(now.getTime() + JOB_LIFE_MS),
  })
}

/** The mail that tells of a reset. Its link leads to the forgot-password form, and holds no secret. */
export function createPasswordChanged(parts: MailParts): MailFlow {
  return {
    findUser: async () => 'unknown',
    refuses: () => undefined,
    hasUsable: async () => false,
    async onRequest() {},
    async mint(job, { user }) {
      const { client } = await parts.identify(job.carried)
      const locale = localeOf(parts, job, user)
      // A stranger may have chosen what the reset carried.
      const query = formQuery({}, locale)
      const url = `${parts.oauthUrl}${MAIL_KINDS.password_changed.page}${query}`
      const apps = await parts.appsOf(user.id, job.id.slice(OF_END.length))
      return { url, token: undefined, clientName: client?.clientName, apps, locale }
    },
    isServedLater: async () => false,
    async revoke() {},
    async abandon() {},
  }
}
