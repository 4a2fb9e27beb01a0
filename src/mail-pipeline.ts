import { keyedHash } from './crypto/keyed-hash.ts'
import type { KeyRing } from './crypto/keys.ts'
import { createMailDelivery } from './flows/mail-delivery.ts'
import { createMailEvents } from './flows/mail-events.ts'
import type { MailLink } from './flows/mail-flow.ts'
import { createMailResolution, type MailFlows } from './flows/mail-resolution.ts'
import { createMailSender } from './mail/mail-sender.ts'
import { createOutboxWorker } from './mail/outbox-worker.ts'
import type {
  AccountFlowsStore,
  AuditEvent,
  Log,
  Mailer,
  MailJob,
  MailKind,
  User,
  UserStore,
} from './ports.ts'
import type { Settings } from './settings/table.ts'
import type { MailName, Views } from './views.ts'

/** From an outbox job to a mail that left. */
export interface MailPipeline {
  start(): void
  wake(at: Date): void
  /** Ends the jobs that cannot be read, or that nobody sent within their life. */
  tidy(): Promise<void>
  stop(withinMs: number): Promise<void>
}

export interface MailPipelineParts {
  flows: MailFlows
  store: AccountFlowsStore
  users: UserStore
  views: Views
  settings(): Settings
  audit(event: AuditEvent): Promise<void>
  keys: KeyRing
  developmentMailer: Mailer | undefined
  log: Log
}

const MAILS: Record<MailKind, MailName> = {
  password_reset: 'password-reset',
  email_verification: 'email-verification',
  password_changed: 'password-changed',
}

export function createMailPipeline(parts: MailPipelineParts): MailPipeline {
  const { flows, store, users, views, settings, audit, keys, log } = parts
  const { outbox } = store
  const now = () => new Date()
  const sender = createMailSender(settings, parts.developmentMailer)
  const events = createMailEvents(
    { record: audit, has: (id) => store.audit.has(id) },
    (identifier) => keyedHash(keys, identifier),
    now,
  )
  const resolution = createMailResolution({ flows, users, outbox, events, log, now })

  const render = (kind: MailKind, { username }: User, link: MailLink, { requestedAt }: MailJob) =>
    views.mail(MAILS[kind], {
      username,
      link: link.url,
      at: requestedAt,
      ...(link.token && { lifetimeMs: link.token.lifetimeMs }),
      ...(link.clientName !== undefined && { clientName: link.clientName }),
    })

  const worker = createOutboxWorker({
    outbox,
    resolve: resolution.resolve,
    send: createMailDelivery({
      flows,
      resolution,
      outbox,
      events,
      connect: sender.connect,
      render,
      settings,
      log,
      now,
    }),
    expire: resolution.expire,
    canSend: sender.canSend,
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
