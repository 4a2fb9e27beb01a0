import type { Command } from 'commander'
import { withExamples } from '../arguments.ts'
import { connect } from '../connection.ts'
import { exitCodes } from '../exit-codes.ts'

export function addKeys(keys: Command): void {
  withExamples(keys, 'keys rotate')

  const rotate = keys
    .command('rotate')
    .description('Encrypt the stored secrets again, with the first key of the ring.')
    .action(rotateKeys)
  withExamples(rotate, 'keys rotate')
}

async function rotateKeys(_: unknown, command: Command) {
  const { admin, output, run } = await connect(command)
  const rotation = await admin.rotateKeys()
  output.answer(rotation, ({ resealed, unreadable, keys, old_keys_needed_until: until }) =>
    [
      `The ring has ${keys} ${keys === 1 ? 'key' : 'keys'}.`,
      resealed.length === 0
        ? 'No secret had to be encrypted again.'
        : `Now encrypted with the first key: ${resealed.join(', ')}`,
      ...(unreadable.length === 0
        ? []
        : [
            output.paint('red', `No key of the ring decrypts: ${unreadable.join(', ')}`),
            `Set it again: account-flows settings set ${unreadable[0] ?? ''}`,
          ]),
      until === undefined
        ? 'No verification link needs an old key any more.'
        : `Verification links may need the old keys until ${until}.`,
    ].join('\n'),
  )
  if (rotation.unreadable.length > 0) run.exitCode = exitCodes.refused
}
