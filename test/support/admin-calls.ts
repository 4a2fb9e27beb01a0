import { expect } from 'chai'
import {
  AdminApiError,
  createAdminClient,
  type AdminApi,
  type AdminClient,
  type AuditEvent,
  type User,
  type UserStore,
} from '../../src/index.ts'
import { eventually } from './eventually.ts'
import { ADMIN_TOKEN, type Harness } from './harness.ts'
import { eventsOf } from './observe.ts'

export function adminOf(h: Harness): AdminClient {
  return createAdminClient(h.baseUrl, ADMIN_TOKEN)
}

/** The admin client of a suite's harness. */
export function suiteAdmin(h: Harness): AdminClient {
  const admin = {} as AdminClient
  before(() => {
    Object.assign(admin, adminOf(h))
  })
  return admin
}

/** With what the admin API refused; fails where it did not. */
export async function refusalOf(asked: Promise<unknown>): Promise<AdminApi.Problem> {
  const error: unknown = await asked.then(
    (answer) => new Error(`it answered ${JSON.stringify(answer)}`),
    (reason: unknown) => reason,
  )
  if (error instanceof AdminApiError && error.problem) return error.problem
  throw error
}

/** The status and code of a refusal. */
export async function codeOf(asked: Promise<unknown>): Promise<[number, string]> {
  const { status, code } = await refusalOf(asked)
  return [status, code]
}

/** What became of a mail, once it is in this state. */
export function outcomeOf(
  h: Harness,
  mailId: string,
  state: AdminApi.MailOutcome['state'],
): Promise<AdminApi.MailOutcome> {
  return eventually(`mail ${mailId} is ${state}`, async () => {
    const outcome = await adminOf(h).mailOutcome({ mail_id: mailId })
    return outcome.state === state && outcome
  })
}

/** What admins did, in the order in which they did it. */
export function actionsOf(h: Harness, action?: string): AdminAction[] {
  return eventsOf(h, 'admin_action').filter(
    ({ details }) => action === undefined || details.action === action,
  )
}

type AdminAction = AuditEvent & { type: 'admin_action' }

/** What each admin action is recorded with. */
export function expectAudited(
  event: AdminAction | undefined,
  action: string,
  { id }: Partial<Pick<User, 'id'>> = {},
): void {
  expect(event).to.include({ type: 'admin_action', accountId: id })
  expect(event?.details).to.include({ action })
  expect(event?.details.actor).to.be.a('string').and.not.to.equal('')
  expect(event?.address).to.be.a('string')
}

/** The host's users, some of whom it deleted. */
export function withDeleted(users: () => UserStore, deleted: ReadonlySet<string>): UserStore {
  const left = (user: User | undefined) => (user && !deleted.has(user.id) ? user : undefined)
  return {
    findById: async (id) => left(await users().findById(id)),
    findByUsername: async (username) => left(await users().findByUsername(username)),
    findByVerifiedEmail: async (email) =>
      (await users().findByVerifiedEmail(email)).filter((user) => left(user)),
    replacePasswordHash: async (id, expected, next) =>
      !deleted.has(id) && users().replacePasswordHash(id, expected, next),
    markEmailVerified: async (id, email) =>
      !deleted.has(id) && users().markEmailVerified(id, email),
    markEmailUnverified: async (id, email) =>
      (await users().markEmailUnverified?.(id, email)) ?? false,
  }
}
