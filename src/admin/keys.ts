import type * as z from 'zod'
import { operation } from './operation.ts'
import { count, list, object, optional, text, time, wireOf } from './schema.ts'
import { REFUSALS } from './settings.ts'

export type KeysRotation = z.infer<typeof KeysRotation>
export const KeysRotation = object(
  'All secrets are now encrypted with the first key of the ring.',
  {
    resealed: list(text, 'Settings that another key had encrypted.'),
    unreadable: list(text, 'Settings that no key of the ring decrypts: set them again.'),
    keys: count.describe('How many keys the ring has.'),
    old_keys_needed_until: optional(
      time,
      'Until this time, verification links may need the other keys of the ring.',
    ),
  },
)

export const rotateKeys = operation('POST /keys/rotate', 'account-flows:settings', {
  summary: 'Encrypts the stored secrets with the first key of the ring. Audited.',
  answer: KeysRotation,
  async run({ actor, record }, { options, store, settingsKeeper, clock }) {
    await record('keys_rotate')
    const keys = options.secrets.length
    // A verification link may be signed with any key of the ring.
    const oldKeysNeededUntil =
      keys > 1 ? await store.verificationTokens.latestExpiry(clock.now()) : undefined
    const outcome = await settingsKeeper.reseal({ by: { actor, at: clock.now() } })
    if (outcome === 'unreadable') return REFUSALS.unreadable
    return wireOf(KeysRotation, { ...outcome, keys, oldKeysNeededUntil })
  },
})
