import type { CarriedParameters, Requester } from '../contract/index.ts'
import { formQuery } from '../contract/requests.ts'
import { MAIL_KINDS } from '../contract/mail-kinds.ts'
import type { MailOutbox } from '../store/index.ts'
import type { MailFlow } from './mail-flow.ts'
import { localeOf } from './render.ts'
import { keptRequester } from '../jobs/request.ts'

/** The owner wants to know of a change by somebody else, however late. */
const JOB_LIFE_MS = 24 * 3_600_000

/** The id of a change begins with it where the host made it, and no link. */
export const BY_HOST = 'host:'

/** A password that was changed. */
export interface PasswordChange {
  /** Of the end of its sessions: of each change another one. */
  id: string
  accountId: string
  /** The address to tell. A thief may have changed that of the account by the time that the mail leaves. */
  email: string
  /** The account only claims that address. */
  isClaim?: boolean | undefined
  carried: CarriedParameters
  /** Who changed it. */
  requester: Requester
}

/** Before the id of the end, which the apps are found by. */
const OF_END = 'changed:'

/** Asks for the mail that tells of a changed password. Repeated, it asks once. */
export function requestNotice(
  outbox: Pick<MailOutbox, 'add'>,
  { id, accountId, email, isClaim, carried, requester }: PasswordChange,
  now: Date,
): Promise<void> {
  return outbox.add({
    id: `${OF_END}${id}`,
    kind: 'password_changed',
    isOfForm: true,
    identifier: undefined,
    accountId,
    pendingLoginId: undefined,
    sendTo: email,
    ...(isClaim && { isClaim }),
    carried,
    requester: keptRequester(requester),
    notBefore: now,
    expiresAt: new Date(now.getTime() + JOB_LIFE_MS),
  })
}

/** The mail that tells of a changed password. Its link leads to the forgot-password form, and holds no secret. */
export const noticeMail: MailFlow = {
  async mint(parts, job, { user }) {
    const locale = localeOf(parts, job, user)
    // A stranger may have chosen what the reset carried.
    const query = formQuery({}, locale)
    const endId = job.id.slice(OF_END.length)
    return {
      url: `${parts.oauthUrl}${MAIL_KINDS.password_changed.page}${query}`,
      token: undefined,
      apps: await parts.appsOf(user.id, endId),
      isByHost: endId.startsWith(BY_HOST),
      locale,
    }
  },
}
