import type { KeysRotation } from '../../src/admin/client.ts'
import { row } from '../command.ts'
import type { Output } from '../output.ts'
import { linesOf } from '../table.ts'

export const keysCommands = [
  { name: 'keys', help: 'Keys that encrypt the stored secrets.' },
  row({
    name: 'keys rotate',
    help: 'Encrypt the stored secrets again, with the first key of the ring.',
    examples: ['keys rotate'],
    changes: true,
    run: (_, { admin }) => admin.rotateKeys(),
    text: rotationText,
    isRefusal: ({ unreadable }) => unreadable.length > 0,
  }),
]

function rotationText(rotation: KeysRotation, output: Output): string {
  const { resealed, unreadable, keys, old_keys_needed_until: until } = rotation
  const [unread] = unreadable
  return linesOf(
    `The ring has ${keys} ${keys === 1 ? 'key' : 'keys'}.`,
    resealed.length === 0
      ? 'No secret had to be encrypted again.'
      : `Now encrypted with the first key: ${resealed.join(', ')}`,
    unread && output.paint('red', `No key of the ring decrypts: ${unreadable.join(', ')}`),
    unread && `Set it again: account-flows settings set ${unread}`,
    until === undefined
      ? 'No verification link needs an old key any more.'
      : `Verification links may need the old keys until ${until}.`,
  )
}
