import { randomBytes } from 'node:crypto'
import type { Clock } from '../../src/clock.ts'
import { createAuthorizeSig } from '../../src/crypto/authorize-sig.ts'
import { createLoginCodes } from '../../src/crypto/login-code.ts'
import { createKeyRing } from '../../src/crypto/keys.ts'
import { createSecretBox } from '../../src/crypto/secret-box.ts'
import { sampleMailJob } from '../../src/contract/samples.ts'
import { memoryStore, memoryUsers, type AuditEvent, type MailJob } from '../../src/index.ts'
import { createMailBrake } from '../../src/outbox/brake.ts'
import { mailFlows } from '../../src/outbox/pipeline.ts'
import type { OutboxParts } from '../../src/outbox/parts.ts'
import type { SendTurn } from '../../src/outbox/send-turn.ts'
import type { MailStage, NewMailJob, OutgoingMail } from '../../src/ports/index.ts'
import { createSettingsKeeper } from '../../src/settings/settings.ts'
import { createViews } from '../../src/views/index.ts'

export const ANN = {
  id: 'ann',
  username: 'ann',
  email: 'ann@example.com',
  emailVerified: true,
  passwordHash: 'a hash',
  disabled: false,
}

/** A connection is free at once. */
export const AT_ONCE: SendTurn = {
  take: (send) => send(new AbortController().signal, false),
  isStopping: () => false,
}

const views = createViews('', { log: () => {} })

/** An outbox in memory whose steps a test takes by hand, with a clock that only the test moves. Ann has an account. */
export async function outboxByHand(settings: Record<string, string> = {}) {
  let time = Date.now()
  const clock: Clock = { now: () => new Date(time), sleep: async () => {} }
  const store = memoryStore(clock)
  const users = memoryUsers()
  users.add(ANN)
  const keys = createKeyRing([randomBytes(32)])
  const keeper = createSettingsKeeper(store.settings, createSecretBox(keys), () => {})
  await keeper.change(settings)
  const events: AuditEvent[] = []
  const mails: OutgoingMail[] = []
  const given = {
    store,
    users,
    pendingLogins: store.pendingLogins,
    identify: async () => ({ carried: {}, clientName: undefined }),
    appsOf: async () => undefined,
    authorizeSig: createAuthorizeSig(keys),
    loginCodes: createLoginCodes(keys),
    oauthUrl: 'https://id.example',
    views,
    settings: keeper.current,
    async audit(event: AuditEvent) {
      events.push(event)
    },
    keyedHash: (text: string) => text,
    sender: {
      canSend: () => true,
      connect: async () => ({
        async send(mail: OutgoingMail) {
          mails.push(mail)
          return {}
        },
        release() {},
      }),
      close() {},
    },
    clock,
    log: () => {},
  }
  const brake = createMailBrake(store.limits, keeper.current, clock.now)
  const parts: OutboxParts = {
    ...given,
    flows: mailFlows(given),
    brake,
  }
  const after = (ms: number) => new Date(time + ms)

  return {
    parts,
    users,
    events,
    mails,
    after,
    move(ms: number) {
      time += ms
    },
    ask: (changes: Partial<NewMailJob> = {}) =>
      store.outbox.add(
        sampleMailJob({ notBefore: after(0), expiresAt: after(3_600_000), ...changes }),
      ),
    claim: (stage: MailStage = 'resolve', at = after(0)): Promise<MailJob[]> =>
      store.outbox.claim(stage, 50, at, new Date(at.getTime() + 10_000)),
  }
}
