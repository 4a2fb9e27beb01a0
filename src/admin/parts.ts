import type { IncomingMessage } from 'node:http'
import type { Context } from 'koa'
import type { Clock } from '../clock.ts'
import { createAdminAuthentication } from './token-check.ts'
import type { AuthorizeSig } from '../crypto/authorize-sig.ts'
import { createDoctor } from './doctor.ts'
import type { EndedSessions } from '../flows/end-sessions.ts'
import { createLinkExplanation } from './link-explanation.ts'
import { createMailRetry } from './mail-retry.ts'
import { createMailOutcome } from './mail-outcome.ts'
import { createUserStatus } from './user-status.ts'
import { adminAccounts } from './accounts.ts'
import { createAdminApi, type AdminApi } from './api.ts'
import { adminAudit, createAuditAction } from './audit.ts'
import { createAdminAuth } from './authentication.ts'
import { adminMails } from './mails.ts'
import { createAdminRouter } from './router.ts'
import { adminSettings } from './settings.ts'
import { adminSupport } from './support.ts'
import type { OwnKeyRing } from '../crypto/key-rings.ts'
import type { CheckedOptions } from '../options.ts'
import type {
  AccountFlowsStore,
  AuditEvent,
  CheckMail,
  Log,
  MailOutbox,
  Requester,
  UserStore,
} from '../ports/index.ts'
import { previewMail, testMail } from './sample-mails.ts'
import type { SettingsKeeper } from '../settings/settings.ts'
import type { Views } from '../views/index.ts'

export interface AdminParts {
  options: Pick<CheckedOptions, 'adminTokens' | 'adminJwt' | 'secrets' | 'developmentMailer'>
  /** Path of the base URL plus `/admin/api`. */
  root: string
  oauthUrl: string
  store: AccountFlowsStore
  users: UserStore
  settings: SettingsKeeper
  keyRing: Pick<OwnKeyRing, 'all'>
  /** Where jobs are added, so that workers hear of them. */
  outbox: Pick<MailOutbox, 'add'>
  wake(at: Date): void
  checkMail: CheckMail
  endSessions(accountId: string): Promise<EndedSessions>
  keyedHash(text: string): string
  authorizeSig: AuthorizeSig
  views: Views
  audit(event: AuditEvent): Promise<void>
  requesterOf(req: IncomingMessage): Requester
  log: Log
  clock: Clock
}

/** The admin API (4.5, 5): what its endpoints need, put together. */
export function createAdmin(parts: AdminParts): AdminApi {
  const { options, store, users, audit, log, clock, oauthUrl, views, checkMail } = parts
  const { now } = clock
  const settings = parts.settings.current
  const tokens = {
    password_reset: store.resetTokens,
    email_verification: store.verificationTokens,
  }
  const hasDevelopmentMailer = options.developmentMailer !== undefined
  const requesterOf = (ctx: Context) => parts.requesterOf(ctx.req)
  const auditAction = createAuditAction(audit, now)
  const common = { auditAction, settings, now }

  const authenticate = createAdminAuth({
    authenticate: createAdminAuthentication(options.adminTokens, options.adminJwt, clock),
    limits: store.limits,
    audit,
    now,
    requesterOf,
    log,
  })
  const route = createAdminRouter(
    {
      ...adminSettings({ settings: parts.settings, audit, auditAction, log, clock }),
      ...adminAccounts({
        ...common,
        users,
        statusOf: createUserStatus({
          outbox: store.outbox,
          audit: store.audit,
          cutoffs: store.cutoffs,
          tokens,
          settings,
          hasDevelopmentMailer,
          now,
        }),
        outbox: parts.outbox,
        endSessions: parts.endSessions,
        forget: (accountId, hash) => store.forget(accountId, now(), hash),
        keyedHash: parts.keyedHash,
      }),
      ...adminMails({
        ...common,
        settings: parts.settings,
        outbox: store.outbox,
        retry: createMailRetry({
          outbox: store.outbox,
          resetTokens: store.resetTokens,
          wake: parts.wake,
          now,
        }),
        outcomeOf: createMailOutcome(store.outbox, store.audit, now),
        checkMail,
        testMail: () => testMail(views, now()),
        previewOf: (name, locale) => previewMail(views, { name, locale, oauthUrl, at: now() }),
        locales: () => views.locales,
      }),
      ...adminAudit(store.audit),
      ...adminSupport({
        auditAction,
        log,
        explain: createLinkExplanation({ ...parts, tokens, now, audit: store.audit }),
        examine: createDoctor({
          ...parts,
          ...options,
          checkMail,
          hasDevelopmentMailer,
        }),
        settings: parts.settings,
        latestLinkExpiry: () => store.verificationTokens.latestExpiry(now()),
        keyCount: options.secrets.length,
      }),
    },
    requesterOf,
  )
  return createAdminApi(parts.root, authenticate, route, log)
}
