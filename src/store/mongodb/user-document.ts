import type { User } from '../../contract/index.ts'

/**
 * A field of an unexpected type counts as absent, a verified flag of one as unverified, a disabled flag of one as set. `undefined`:
 * the `_id` is neither a string nor an ObjectId, and such a user could not be found again.
 */
export function toUser(document: object): User | undefined {
  const fields = new Map<string, unknown>(Object.entries(document))
  const id = fields.get('_id')
  if (!isId(id)) return undefined
  const locale = nonEmpty(fields.get('locale'))
  return {
    id: String(id),
    username: nonEmpty(fields.get('username')) ?? '',
    email: nonEmpty(fields.get('email')),
    emailVerified: fields.get('email_verified') === true,
    passwordHash: nonEmpty(fields.get('password_hash')),
    disabled: (fields.get('disabled') ?? false) !== false,
    ...(locale !== undefined && { locale }),
  }
}

function nonEmpty(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** Not `instanceof ObjectId`: the host's driver may be another copy of the package. */
const isId = (id: unknown): boolean =>
  typeof id === 'string' ||
  (typeof id === 'object' && id !== null && typeof Reflect.get(id, 'toHexString') === 'function')
