import type * as z from 'zod'
import { recordAction } from './audit.ts'
import { operation } from './operation.ts'
import { count, list, object, optional, text, time } from './schema.ts'
import { REFUSALS } from './settings-change.ts'

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

export const keysOperations = {
  rotateKeys: operation({
    route: 'POST /keys/rotate',
    scope: 'account-flows:settings',
    summary: 'Encrypts the stored secrets with the first key of the ring. Audited.',
    answer: KeysRotation,
    async run(request, parts) {
      await recordAction(parts, request, 'keys_rotate')
      const { store, settings, clock, options } = parts
      const keys = options.secrets.length
      // One of them may be signed with any key of the ring.
      const neededUntil =
        keys > 1 ? await store.verificationTokens.latestExpiry(clock.now()) : undefined
      const by = { actor: request.actor, at: clock.now() }
      const outcome = await settings.reseal({ by })
      if (outcome === 'unreadable') return REFUSALS.unreadable
      return { answer: { ...outcome, keys, old_keys_needed_until: neededUntil } }
    },
  }),
}
