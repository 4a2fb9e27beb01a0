import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { endIn, sampleMailJob, sampleResetToken } from '../../src/contract/samples.ts'
import { createKeyRing } from '../../src/crypto/keys.ts'
import { createSecretBox } from '../../src/crypto/secret-box.ts'
import { createMailEvents } from '../../src/outbox/events.ts'
import { createMailLimits } from '../../src/outbox/limits.ts'
import { createMailResolution } from '../../src/outbox/resolve.ts'
import { createPasswordChanged } from '../../src/outbox/password-changed.ts'
import { createResetMail } from '../../src/outbox/reset-mail.ts'
import {
  memoryStore,
  memoryUsers,
  type AccountFlowsStore,
  type AuditEvent,
} from '../../src/index.ts'
import { createSettingsKeeper } from '../../src/settings/settings.ts'

const CAP = 2
const ANN = {
  id: 'ann',
  username: 'ann',
  email: 'ann@example.com',
  emailVerified: true,
  passwordHash: 'a hash',
  disabled: false,
}
const now = () => new Date()
const oauthUrl = 'https://id.example'
const identify = async () => ({ carried: {}, clientName: undefined })

/** The settings of a store, these among them. */
async function settingsWith({ settings }: AccountFlowsStore, values: Record<string, string>) {
  const box = createSecretBox(createKeyRing([randomBytes(32)]))
  const keeper = createSettingsKeeper(settings, box, () => {})
  await keeper.change(values)
  return keeper.current
}

const later = () => new Date(Date.now() + 120_000)

describe('Mails within the cap, whose worker dies after it looked the account up', () => {
  it('are not judged again: one of them leaves', async () => {
    const store = memoryStore()
    const users = memoryUsers()
    users.add(ANN)
    const settings = await settingsWith(store, { mails_per_account_per_hour: String(CAP) })

    let isDown = true
    const recorded: AuditEvent[] = []
    const events = createMailEvents(
      {
        async record(event) {
          if (isDown) throw new Error('the audit log is away')
          recorded.push(event)
        },
        list: async () => [],
      },
      (identifier) => identifier,
      now,
    )
    const { outbox, resetTokens } = store
    const earlier = sampleResetToken({
      userId: ANN.id,
      requestedAt: new Date(0),
      expiresAt: later(),
    })
    await resetTokens.issue(earlier)
    const reset = createResetMail({ identify, users, resetTokens, settings, oauthUrl, now })
    const flows = {
      password_reset: reset,
      email_verification: reset,
      password_changed: createPasswordChanged({ identify, oauthUrl }),
    }
    const limits = createMailLimits({
      flows,
      limits: store.limits,
      outbox,
      keyedHash: (text) => text,
      settings,
      now,
    })
    const resolution = createMailResolution({
      flows,
      users,
      outbox,
      limits,
      events,
      log: () => {},
      now,
    })

    const claim = (stage: 'resolve' | 'send', at: Date) =>
      outbox.claim(stage, CAP + 1, at, new Date(at.getTime() + 10_000))
    for (let count = 0; count < CAP; count += 1) {
      await outbox.add(
        sampleMailJob({
          identifier: 'ann',
          notBefore: now(),
          expiresAt: new Date(Date.now() + 3_600_000),
        }),
      )
    }
    const first = await claim('resolve', now())
    expect(first).to.have.length(CAP)
    for (const job of first) {
      expect(await resolution.resolve(job).catch(() => 'died')).to.equal('died')
    }

    isDown = false
    expect(await endIn(resetTokens, earlier, 0)).to.equal('alive')
    expect(await claim('resolve', later())).to.deep.equal([])
    const ready = await claim('send', later())
    expect(ready).to.have.length(CAP)
    const outcomes = await Promise.all(ready.map(resolution.recipientOf))
    expect(outcomes.filter((outcome) => outcome !== 'superseded')).to.deep.equal([
      { user: ANN, email: ANN.email },
    ])
    expect(await endIn(resetTokens, earlier, 0)).to.equal('invalidated')
    const requested = recorded.filter(({ type }) => type === 'password_reset_requested')
    expect(requested.map(({ reason }) => reason)).to.deep.equal(ready.map(() => undefined))
  })
})

describe('The end of a cooldown, which the page counted from a moment before', () => {
  /** Whether a second request gets no mail, so many milliseconds before the end, while the first one is under way. */
  async function refuses(cooldown: string, msToEnd: number): Promise<boolean> {
    const store = memoryStore()
    const given = { resend_cooldown: cooldown, mails_per_account_per_hour: '0' }
    const settings = await settingsWith(store, given)
    const { resetTokens } = store
    const reset = createResetMail({
      identify,
      users: memoryUsers(),
      resetTokens,
      settings,
      oauthUrl,
      now,
    })
    const limits = createMailLimits({
      flows: { password_reset: reset, email_verification: reset, password_changed: reset },
      limits: { hit: async () => ({ count: 2, msToEnd }) },
      outbox: {
        requestsOf: async () => [
          {
            id: 'another',
            requestedAt: now(),
            expiresAt: later(),
            isResolved: true,
            isWaiting: true,
            isOfLogin: false,
          },
        ],
      },
      keyedHash: (text) => text,
      settings,
      now,
    })
    const claimed = { isSuperseded: false, isResolved: false, requestedAt: now(), attempts: 1 }
    const lease = { leaseId: '', heldUntil: later() }
    return limits.refuse({ ...sampleMailJob({ identifier: 'ann' }), ...claimed, ...lease }, ANN)
  }

  it('is over in its last second, and not before', async () => {
    expect(await refuses('1m', 1_001)).to.equal(true)
    expect(await refuses('1m', 1_000)).to.equal(false)
    expect(await refuses('1m', 0)).to.equal(false)
  })

  it('is over in the last half of a shorter one', async () => {
    expect(await refuses('1s', 501)).to.equal(true)
    expect(await refuses('1s', 500)).to.equal(false)
  })
})
