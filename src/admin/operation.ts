import * as z from 'zod'
import type { IncomingMessage } from 'node:http'
import type { Clock } from '../clock.ts'
import type { AuditEvent, EndedAccount, Log, Requester, UserStore } from '../contract/index.ts'
import type { AuthorizeSig, OwnKeyRing } from '../crypto/keys.ts'
import type { ClientNotifications } from '../flows/password-changed.ts'
import type { Invitation } from '../flows/invitation.ts'
import type { CheckedOptions } from '../options.ts'
import type { SettingsKeeper } from '../settings/settings.ts'
import type { Settings } from '../settings/table.ts'
import type { AccountFlowsStore, MailOutbox } from '../store/index.ts'
import type { Views } from '../views/index.ts'
import type { AdminScope } from './bearer-tokens.ts'
import { object, optional, text } from './schema.ts'
import type { CheckMail } from '../mail/sending.ts'

export interface AdminParts extends Pick<ClientNotifications, 'clientsOf'> {
  options: CheckedOptions
  store: AccountFlowsStore
  users: UserStore
  settingsKeeper: SettingsKeeper
  settings(): Settings
  keyRing: OwnKeyRing
  keyedHash(text: string): string
  authorizeSig: AuthorizeSig
  oauthUrl: string
  views: Views
  requesterOf(req: IncomingMessage): Requester
  audit(event: AuditEvent): Promise<void>
  clock: Clock
  log: Log
  /** Where jobs are added, so that workers hear of them. */
  outbox: Pick<MailOutbox, 'add'>
  /** Tells the workers that a mail is due. */
  wake(at: Date): void
  checkMail: CheckMail
  /** Whether there is anywhere to send mails to. */
  canSend(): boolean
  invite: Invitation['invite']
  /** Of the stored hashes that cost too much for everybody to pay for, as far as this process saw one. */
  dearestCost(): number | undefined
  endSessions(accountId: string): Promise<EndedAccount>
}

export interface AdminCaller {
  /** Whose token it is. */
  actor: string
  requester: Requester
}

export interface AdminRequest<Query = {}, Body = undefined> extends AdminCaller {
  /** With its defaults. */
  query: Query
  body: Body
  /** ETags of `If-Match`; `undefined`: there is no such header. */
  ifMatch: string[] | undefined
  /** Gives the answer this ETag. */
  tag(etag: string): void
}

export type SettingProblem = z.infer<typeof SettingProblem>
export const SettingProblem = object('One thing wrong with a request to change settings.', {
  key: text,
  expected: text.describe('What a value must be.'),
  got: text.describe('What was sent; never the value of a secret, or of an unknown setting.'),
})

export type Candidate = z.infer<typeof Candidate>
export const Candidate = object('One of several accounts that match.', {
  id: text,
  username: text,
})

export type Problem = z.infer<typeof Problem>
export const Problem = object('RFC 9457. `code` is stable, `title` is a sentence and may change.', {
  title: text,
  status: z.int(),
  code: text,
  errors: optional(z.array(SettingProblem)),
  candidates: optional(z.array(Candidate)),
})

/** No answer has a `code`. */
export const isProblem = (answer: object): answer is Problem => 'code' in answer

/** One operation of the admin API (4.5): where it is, who may ask, what it takes and answers, and what it does. */
export interface Operation<
  Query extends z.ZodObject = z.ZodObject,
  Body extends z.ZodType = z.ZodType,
  Answer extends z.ZodType = z.ZodType,
> {
  /** Method, and path below that of the admin API. */
  route: `${'GET' | 'PUT' | 'POST'} /${string}`
  scope: AdminScope
  summary: string
  query?: Query
  body?: Body
  answer: Answer
  status?: 200 | 202
  /** Whether it answers an ETag, or honours `If-Match`. */
  etag?: true
  run(
    request: AdminRequest<z.output<Query>, z.output<Body>>,
    parts: AdminParts,
  ): Promise<(z.input<Answer> & object) | Problem>
}

/** So that `run` is given and answers what the schemas beside it say. */
export function operation<
  Answer extends z.ZodType,
  Query extends z.ZodObject = z.ZodObject<{}>,
  Body extends z.ZodType = z.ZodUndefined,
>(described: Operation<Query, Body, Answer>): Operation<Query, Body, Answer> {
  return described
}

/** Why nothing was done: a stable code, and a sentence. */
export function refusal(status: number, code: string, title: string): Problem {
  return { status, code, title }
}

export function invalid(title: string, ...errors: SettingProblem[]): Problem {
  return { ...refusal(400, 'invalid_request', title), errors }
}

export function invalidSettings(what: 'changed' | 'sent', errors: SettingProblem[]): Problem {
  const title = `Nothing was ${what}: some settings are not valid.`
  return { ...refusal(400, 'invalid_settings', title), errors }
}

export function notAnAddress(to: string, what: 'sent' | 'checked'): Problem {
  const got = JSON.stringify(to).slice(0, 64)
  const title = `Nothing was ${what}: this is not an e-mail address.`
  return invalid(title, { key: 'to', expected: 'one plain e-mail address', got })
}
