import { createHash, randomBytes } from 'node:crypto'

/** 32 random bytes as base64url: 43 characters (2.1, 2.2). */
export function newToken(): string {
  return randomBytes(32).toString('base64url')
}

/** Whether the value has the form of a token. Anything else needs no look-up. */
export function isToken(value: string): boolean {
  return /^[A-Za-z0-9_-]{43}$/.test(value)
}

/** What is stored of a token: lower-case hex. */
export function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}

/** An identifier for a record; not a secret. It never begins with a hyphen: a command line would read that as an option. */
export function newId(): string {
  const id = randomBytes(16).toString('base64url')
  return id.startsWith('-') ? newId() : id
}

/** The identifier of the one record for these values. It cannot be guessed without all of them. */
export function idOf(values: unknown): string {
  return createHash('sha256')
    .update(JSON.stringify(values))
    .digest('base64url')
    .slice(0, 22)
    .replace(/^-/, '_')
}

export function isId(value: string): boolean {
  return /^[A-Za-z0-9_-]{22}$/.test(value)
}
