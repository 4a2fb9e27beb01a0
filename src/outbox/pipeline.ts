import { createMailBrake } from './brake.ts'
import { deliverMail } from './deliver.ts'
import { endExpired, endUnreadable } from './end.ts'
import type { MailFlows } from './mail-flow.ts'
import type { MailParts } from './parts.ts'
import { createNoticeMail } from './password-changed.ts'
import { createInvitationMail, createResetMail } from './reset-mail.ts'
import { resolveJob } from './resolve.ts'
import { createVerificationMail } from './verification-mail.ts'
import { createOutboxWorker } from './worker.ts'

/** From an outbox job to a mail that left. */
export function createMailPipeline(given: MailParts) {
  const { store, settings, sender, clock, log } = given
  const brake = createMailBrake(store.limits, settings, clock.now)
  const parts = { ...given, flows: mailFlows(given), brake }
  const worker = createOutboxWorker({
    outbox: store.outbox,
    resolve: (job) => resolveJob(parts, job),
    send: (job, turn) => deliverMail(parts, job, turn),
    expire: (job) => endExpired(parts, job),
    canSend: () => sender.canSend() && brake.isOpen(),
    clock,
    log,
  })

  return {
    start: worker.start,
    wake: worker.wake,

    /** Ends the jobs that cannot be read, or that nobody sent within their life. */
    async tidy() {
      await endUnreadable(parts)
      await worker.expire()
    },

    async stop(withinMs: number) {
      await worker.stop(withinMs)
      sender.close()
    },
  }
}

/** What each kind of `ports/mail-kinds.ts` does. */
export function mailFlows(parts: MailParts): MailFlows {
  return {
    password_reset: createResetMail(parts),
    email_verification: createVerificationMail(parts),
    invitation: createInvitationMail(parts),
    password_changed: createNoticeMail(parts),
  }
}
