import { expect } from 'chai'
import type { AuditEvent, User } from '../../src/index.ts'
import type * as AdminApi from '../../src/admin/client.ts'
import { AdminApiError, createAdminClient, type AdminClient } from '../../src/admin/client.ts'
import { eventually } from './eventually.ts'
import { ADMIN_TOKEN, type Harness } from './harness.ts'
import { suiteOf } from './suite.ts'

export const bearer = { authorization: `Bearer ${ADMIN_TOKEN}` }

export function adminOf(h: Pick<Harness, 'baseUrl'>): AdminClient {
  return createAdminClient(h.baseUrl, ADMIN_TOKEN)
}

/** The admin client of a suite's harness. */
export function suiteAdmin(h: Harness): AdminClient {
  return suiteOf<AdminClient>(
    async () => adminOf(h),
    () => {},
  )
}

/** What the client throws, without the token; fails where it throws nothing, or anything else. */
export async function thrownBy(asked: Promise<unknown>): Promise<AdminApiError> {
  const error: unknown = await asked.then(
    (answer) => new Error(`it answered ${JSON.stringify(answer)}`),
    (reason: unknown) => reason,
  )
  if (!(error instanceof AdminApiError)) throw error
  const { message, stack, problem } = error
  expect(JSON.stringify({ ...error, message, stack, problem })).not.to.include(ADMIN_TOKEN)
  return error
}

/** With what the admin API refused. */
export async function refusalOf(asked: Promise<unknown>): Promise<AdminApi.Problem> {
  const thrown = await thrownBy(asked)
  if (thrown.problem) return thrown.problem
  throw thrown
}

/** The status and code of a refusal. */
export async function codeOf(asked: Promise<unknown>): Promise<[number, string]> {
  const { status, code } = await refusalOf(asked)
  return [status, code]
}

let networks = 0

/** A network that nobody asked from before: failures are limited by network. */
export function newNetwork(): { 'x-forwarded-for': string } {
  networks += 1
  return { 'x-forwarded-for': `10.0.${networks >> 8}.${networks & 255}` }
}

/** For what is refused: the same settings, mails and actions of admins after it as before. */
export async function changesNothing(h: Harness, work: () => Promise<unknown>): Promise<void> {
  const state = async () => ({
    settings: await adminOf(h).getSettings(),
    outbox: (await adminOf(h).listOutbox({ limit: 1000 })).mails.map(({ id, state }) => [
      id,
      state,
    ]),
    mails: h.mail.mails.length,
    actions: actionsOf(h).map(({ details }) => details.action),
  })
  const before = await state()
  await work()
  expect(await state()).to.deep.equal(before)
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

/** What a check says at one of its steps. */
export const stepOf = <Checked extends { step: string }>(
  steps: readonly Checked[],
  wanted: Checked['step'],
): Checked => steps.find(({ step }) => step === wanted) ?? expect.fail(`no step ${wanted}`)

type AdminAction = AuditEvent & { type: 'admin_action' }

/** What admins did, in the order in which they did it. */
export function actionsOf(h: Harness, action?: string): AdminAction[] {
  return h
    .eventsOf('admin_action')
    .filter(({ details }) => action === undefined || details.action === action)
}

/** The last thing that an admin did is this, to this user, and it is recorded with who and from where. */
export function expectAudited(h: Harness, action: string, user?: Pick<User, 'id'>): AdminAction {
  const event = actionsOf(h, action).at(-1)
  if (!event) throw new Error(`no admin action ${action}`)
  expect(event).to.include({ type: 'admin_action', accountId: user?.id })
  expect(event.details.actor).to.be.a('string').and.not.to.equal('')
  expect(event.address).to.be.a('string')
  return event
}

export interface SettingsRequest {
  /** As it is behind the `?`. */
  query?: string
  body?: unknown
  ifMatch?: string
}

/** What an admin asks of `{base_url}/admin/api/settings`. The harness may be one that starts later. */
export function settingsOf(h: Pick<Harness, 'baseUrl'>) {
  const ask =
    (method: string, path = '') =>
    ({ query, body, ifMatch }: SettingsRequest = {}) =>
      fetch(`${h.baseUrl}/admin/api/settings${path}${query === undefined ? '' : `?${query}`}`, {
        method,
        headers: {
          ...bearer,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...(ifMatch !== undefined && { 'if-match': ifMatch }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
  const get = ask('GET')
  return {
    get,
    put: ask('PUT'),
    unset: ask('POST', '/unset'),

    async shown(): Promise<Record<string, string>> {
      const response = await get()
      expect(response.status).to.equal(200)
      return response.json()
    },

    async etag(): Promise<string> {
      return (await get()).headers.get('etag') ?? 'none'
    },
  }
}

/** RFC 9457, with no secret in it. */
export async function problemOf(
  answer: Response | Promise<Response>,
  status: number,
  code?: string,
): Promise<AdminApi.Problem> {
  const response = await answer
  const text = await response.text()
  expect(response.status, text).to.equal(status)
  expect(response.headers.get('content-type')).to.match(/^application\/problem\+json/)
  expect(response.headers.get('cache-control')).to.equal('no-store')
  expect(text).not.to.include('canary').and.not.to.include(ADMIN_TOKEN)
  const problem = JSON.parse(text)
  expect(problem).to.include({ status, ...(code !== undefined && { code }) })
  expect(problem.title).to.be.a('string').and.not.equal('')
  return problem
}
