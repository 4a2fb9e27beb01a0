import type { Clock } from '../clock.ts'
import type { AuthorizeSig } from '../crypto/authorize-sig.ts'
import { keyedHash, type KeyRing } from '../crypto/keys.ts'
import { createMailBrake } from './brake.ts'
import { createMailDelivery } from './deliver.ts'
import { createMailEvents } from './events.ts'
import { createMailLimits } from './limits.ts'
import type { MailFlows, MailLink } from './mail-flow.ts'
import { createMailResolution } from './resolve.ts'
import { createPasswordChanged } from './password-changed.ts'
import { createResetMail } from './reset-mail.ts'
import { createVerificationMail } from './verification-mail.ts'
import { createOutboxWorker } from './worker.ts'
import type {
  AccountFlowsStore,
  AuditEvent,
  CarriedParameters,
  IdentifiedClient,
  Log,
  MailSender,
  MailJob,
  MailKind,
  PendingLoginStore,
  User,
  UserStore,
} from '../ports/index.ts'
import type { Settings } from '../settings/table.ts'
import type { Languages, MailName, Views } from '../views/index.ts'

/** From an outbox job to a mail that left. */
export interface MailPipeline {
  start(): void
  wake(at: Date): void
  /** Ends the jobs that cannot be read, or that nobody sent within their life. */
  tidy(): Promise<void>
  stop(withinMs: number): Promise<void>
}

export interface MailPipelineParts {
  store: AccountFlowsStore
  users: UserStore
  pendingLogins: PendingLoginStore
  /** Drops what does not belong to a registered client and its redirect URI, and names that client. */
  identify(carried: CarriedParameters): Promise<IdentifiedClient>
  authorizeSig: AuthorizeSig
  /** Where links start: base URL and OAuth path, never anything from a request. */
  oauthUrl: string
  views: Views
  settings(): Settings
  audit(event: AuditEvent): Promise<void>
  keys: KeyRing
  sender: MailSender
  clock: Clock
  log: Log
}

const MAILS: Record<MailKind, MailName> = {
  password_reset: 'password-reset',
  email_verification: 'email-verification',
  password_changed: 'password-changed',
}

export function createMailPipeline(parts: MailPipelineParts): MailPipeline {
  const { store, users, views, sender, settings, audit, keys, clock, log } = parts
  const { outbox, limits: windows } = store
  const { now } = clock
  const hash = (text: string) => keyedHash(keys, text)
  const flows = mailFlows(parts, now)
  const events = createMailEvents({ record: audit, has: (id) => store.audit.has(id) }, hash, now)
  const limits = createMailLimits({
    flows,
    limits: windows,
    outbox,
    keyedHash: hash,
    settings,
    now,
  })
  const brake = createMailBrake(windows, settings, now)
  const resolution = createMailResolution({ flows, users, outbox, limits, events, log, now })

  const render = (kind: MailKind, user: User, link: MailLink, job: MailJob) =>
    views.mail(
      MAILS[kind],
      {
        username: user.username,
        link: link.url,
        at: job.requestedAt,
        ...(link.token && { lifetimeMs: link.token.lifetimeMs }),
        ...(link.clientName !== undefined && { clientName: link.clientName }),
        userAgent: job.requester.userAgent,
        isByAdmin: job.requester.isAdmin ?? false,
      },
      languagesOf(user, link, job),
    )

  const worker = createOutboxWorker({
    outbox,
    resolve: resolution.resolve,
    send: createMailDelivery({
      flows,
      resolution,
      outbox,
      brake,
      events,
      connect: sender.connect,
      render,
      settings,
      log,
      clock,
    }),
    expire: resolution.expire,
    canSend: () => sender.canSend() && brake.isOpen(),
    clock,
    log,
  })

  return {
    start: worker.start,
    wake: worker.wake,

    async tidy() {
      await resolution.endUnreadable()
      await worker.expire()
    },

    async stop(withinMs) {
      await worker.stop(withinMs)
      sender.close()
    },
  }
}

function mailFlows(parts: MailPipelineParts, now: () => Date): MailFlows {
  const { users, identify, oauthUrl, settings, authorizeSig } = parts
  const { resetTokens, verificationTokens } = parts.store
  const common = { users, identify, oauthUrl, settings, now }
  return {
    password_reset: createResetMail({ ...common, resetTokens }),
    email_verification: createVerificationMail({
      ...common,
      verificationTokens,
      pendingLogins: parts.pendingLogins,
      authorizeSig,
    }),
    password_changed: createPasswordChanged(common),
  }
}

/** An admin reads nothing of what is sent. */
function languagesOf(user: User, link: MailLink, { requester }: MailJob): Languages {
  if (requester.isAdmin) return { user: user.locale }
  return {
    asked: requester.uiLocales ?? link.uiLocales,
    user: user.locale,
    accepted: requester.acceptLanguage,
  }
}
