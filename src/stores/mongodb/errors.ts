import { z } from 'zod'

const DUPLICATE_KEY = 11000

/** Not `instanceof`: the host's driver may be another copy of the package. */
export function serverErrorCode(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}

export function isDuplicateKey(error: unknown): error is Error {
  return serverErrorCode(error) === DUPLICATE_KEY
}

/**
 * The places of the writes whose key was taken, in an unordered command with many writes. The others are done. Other failures are thrown, such as the write concern: the driver then names no failed writes.
 */
export async function duplicatesIn(command: Promise<unknown>): Promise<Set<number>> {
  try {
    await command
    return new Set()
  } catch (error) {
    const failures = [error instanceof Error && Reflect.get(error, 'writeErrors')].flat()
    const { data: duplicates } = Duplicates.safeParse(failures)
    if (!duplicates) throw error
    return new Set(duplicates.map(({ index }) => index))
  }
}

const Duplicates = z
  .array(z.object({ code: z.literal(DUPLICATE_KEY), index: z.number() }))
  .nonempty()
