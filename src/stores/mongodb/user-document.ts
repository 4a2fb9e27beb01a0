import type { User } from '../../ports/index.ts'

/**
 * A field of an unexpected type counts as absent, a verified flag of one as unverified, a disabled flag of one as set. `undefined`:
 * the `_id` is neither a string nor an ObjectId, and such a user could not be found again.
 */
export function toUser(document: object): User | undefined {
  const fields = new Map<string, unknown>(Object.entries(document))
  const id = toId(fields.get('_id'))
  if (id === undefined) return undefined
  const locale = nonEmpty(fields.get('locale'))
  return {
    id,
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
function toId(id: unknown): string | undefined {
  if (typeof id === 'string') return id
  if (typeof id === 'object' && id && 'toHexString' in id && typeof id.toHexString === 'function') {
    const hex: unknown = id.toHexString()
    if (typeof hex === 'string') return hex
  }
  return undefined
}
