import { keyedHash } from './crypto/keyed-hash.ts'
import type { KeyRing } from './crypto/keys.ts'
import { createMailDelivery, type MailDeliveryPorts } from './flows/mail-delivery.ts'
import { createMailSender } from './mail/mail-sender.ts'
import { createOutboxWorker } from './mail/outbox-worker.ts'
import type { AccountFlowsStore, AuditEvent, Log, Mailer, MailKind } from './ports.ts'
import type { Settings } from './settings/table.ts'
import type { MailName, Views } from './views.ts'

/** From an outbox job to a mail that left. */
export interface MailPipeline {
  start(): void
  wake(at: Date): void
  stop(withinMs: number): Promise<void>
}

export interface MailPipelineParts {
  flows: MailDeliveryPorts['flows']
  store: AccountFlowsStore
  views: Views
  settings(): Settings
  audit(event: AuditEvent): Promise<void>
  keys: KeyRing
  developmentMailer: Mailer | undefined
  log: Log
}

const ATTEMPT_MS = 30_000

const MAILS: Record<MailKind, MailName> = {
  password_reset: 'password-reset',
  email_verification: 'email-verification',
}

export function createMailPipeline(parts: MailPipelineParts): MailPipeline {
  const { flows, store, views, settings, audit, keys, developmentMailer, log } = parts
  const now = () => new Date()
  const sender = createMailSender(settings, developmentMailer)
  const deliver = createMailDelivery({
    flows,
    outbox: store.outbox,
    render: (kind, { username }, { url: link, lifetimeMs, clientName }) =>
      views.mail(MAILS[kind], {
        username,
        link,
        lifetimeMs,
        ...(clientName !== undefined && { clientName }),
      }),
    async send(mail) {
      const connection = await sender.connect(settings(), AbortSignal.timeout(ATTEMPT_MS))
      try {
        await connection.send(mail)
      } finally {
        connection.release()
      }
    },
    canSend: sender.canSend,
    async voidLink({ kind, requestedAt }, userId) {
      if (kind !== 'password_reset') return
      await store.resetTokens.invalidateLive(userId, requestedAt, now())
    },
    audit,
    keyedHash: (identifier) => keyedHash(keys, identifier),
    log,
    now,
  })
  const worker = createOutboxWorker({ outbox: store.outbox, deliver, log })

  return {
    start: worker.start,
    wake: worker.wake,
    async stop(withinMs) {
      await worker.stop(withinMs)
      sender.close()
    },
  }
}
