import { createHash, randomUUID } from 'node:crypto'
import { endOf } from '../../../src/store/tokens.ts'
import type {
  AccountFlowsStore,
  AuditLog,
  MailJob,
  MailStage,
  NewClientLogout,
  NewMailJob,
  NewToken,
  NotMeToken,
  PendingLogin,
  TokenClaim,
  Token,
  TokenStore,
} from '../../../src/store/index.ts'

/** A fixed time that the contract counts from; far enough ahead that no broom sweeps its records away. */
const start = Date.now() + 60_000

export function after(milliseconds: number): Date {
  return new Date(start + milliseconds)
}

export const minute = 60_000
export const hour = 60 * minute

/** Twenty callers at once. */
export function atOnce<T>(act: (caller: number) => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: 20 }, (_, caller) => act(caller)))
}

export function sampleResetToken(changes: Partial<NewToken> = {}): NewToken {
  const id = randomUUID()
  return {
    id,
    tokenHash: createHash('sha256').update(id).digest('hex'),
    userId: 'ann',
    email: 'Ann@example.com',
    passwordDigest: 'digest',
    parameters: { clientId: 'app', redirectUri: 'https://app.example/cb', scope: '', state: 'ü$.' },
    locale: 'de-AT',
    requestedAt: after(0),
    mailJobId: 'job',
    attempt: 1,
    createdAt: after(0),
    expiresAt: after(hour),
    ...changes,
  }
}

export function sampleVerificationToken(changes: Partial<NewToken> = {}): NewToken {
  return sampleResetToken({ pendingLoginId: 'pending', ...changes })
}

export function sampleNotMeToken(changes: Partial<NotMeToken> = {}): NotMeToken {
  const { tokenHash: id, userId, email, requestedAt, mailJobId, attempt } = sampleResetToken()
  const mail = { kind: 'password_reset', locale: 'de-AT', addressId: 'address' } as const
  const times = { requestedAt, createdAt: after(0), purgeAt: after(hour) }
  return { ...mail, id, userId, email, mailJobId, attempt, ...times, ...changes }
}

/** What is told of a token that nothing happened to. */
export function issuedAs(issued: NewToken): Token {
  const { tokenHash: _tokenHash, ...token } = issued
  const unused = { usedAt: undefined, claimedAt: undefined }
  const alive = { invalidatedAt: undefined, completedAt: undefined }
  const none = { locale: undefined, pendingLoginId: undefined, addressId: undefined }
  return { ...none, ...token, ...unused, ...alive }
}

/** What ended a token at that time; `unknown`: there is none. */
export async function endIn(tokens: TokenStore, { tokenHash }: { tokenHash: string }, at = 1) {
  const token = await tokens.find(tokenHash)
  return token ? (endOf(token, after(at)) ?? 'alive') : 'unknown'
}

export function samplePendingLogin(
  changes: Partial<PendingLogin> = {},
  params: Record<string, unknown> = { client_id: 'app', redirect_uri: 'https://app.example/cb' },
): PendingLogin {
  return {
    id: randomUUID(),
    accountId: 'ann',
    email: 'Ann@example.com',
    passwordDigest: 'digest',
    captured: {
      params,
      prompt: { name: 'login', reasons: ['no_session'], details: {} },
      login: { accountId: 'ann', amr: ['pwd'], ts: 1_700_000_000 },
    },
    other: undefined,
    browserHash: 'hash of a browser',
    waitId: 'wait',
    createdAt: after(0),
    continuedAt: undefined,
    turn: undefined,
    purgeAt: after(hour),
    ...changes,
  }
}

export function sampleClientLogout(changes: Partial<NewClientLogout> = {}): NewClientLogout {
  return {
    id: randomUUID(),
    endId: 'end',
    accountId: 'ann',
    clientId: 'app',
    sid: 'session',
    state: 'waiting',
    requestedAt: after(0),
    expiresAt: after(24 * hour),
    ...changes,
  }
}

export function sampleMailJob(changes: Partial<NewMailJob> = {}): NewMailJob {
  return {
    id: randomUUID(),
    kind: 'password_reset',
    identifier: 'ann',
    accountId: undefined,
    pendingLoginId: undefined,
    parameters: { state: '' },
    requester: {
      address: '192.0.2.1',
      userAgent: undefined,
      uiLocales: 'de-AT',
      acceptLanguage: 'fr,en',
    },
    notBefore: after(0),
    expiresAt: after(hour),
    ...changes,
  }
}

export function sampleClaim(changes: Partial<TokenClaim> = {}): TokenClaim {
  return {
    newHash: 'next',
    by: { address: '192.0.2.1', userAgent: undefined, acceptLanguage: 'de-AT,en' },
    at: after(1),
    leaseUntil: after(minute),
    ...changes,
  }
}

/** The next job of a stage. `undefined`: there is none. */
export async function claimOne(
  outbox: AccountFlowsStore['outbox'],
  stage: MailStage,
  at: number,
  leaseMs = minute,
) {
  const [job] = await outbox.claim(stage, 1, after(at), after(at + leaseMs))
  return job
}

/** What is told of one job. `undefined`: there is none. */
export async function statusIn(outbox: AccountFlowsStore['outbox'], id: string, at = 1) {
  const [status] = await outbox.list({ id, limit: 1 }, after(at))
  return status
}

/** What is told of one event. `undefined`: there is none. */
export async function eventIn(audit: AuditLog, id: string) {
  const [event] = await audit.list({ id, limit: 1 })
  return event
}

export function mustExist<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('Expected a value, got undefined')
  return value
}

export function idOf(job: MailJob | undefined): string | undefined {
  return job?.id
}
