const DUPLICATE_KEY = 11000

/** Not `instanceof`: the host's driver may be another copy of the package. */
export function serverErrorCode(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}

export function isDuplicateKey(error: unknown): error is Error {
  return serverErrorCode(error) === DUPLICATE_KEY
}

/**
 * The places of the writes whose key was taken, in an unordered command with many writes; optionally of one index alone. The
 * others are done. Other failures are thrown, such as the write concern: the driver then names no failed writes.
 */
export async function duplicatesIn(command: Promise<unknown>, inIndex = ''): Promise<Set<number>> {
  try {
    await command
    return new Set()
  } catch (error) {
    const failures: unknown[] = [error instanceof Error && Reflect.get(error, 'writeErrors')].flat()
    const duplicates = failures.filter((failure) => isDuplicate(failure))
    const isMeant = duplicates.every(({ errmsg }) => errmsg.includes(inIndex))
    if (failures.length === 0 || duplicates.length < failures.length || !isMeant) throw error
    return new Set(duplicates.map(({ index }) => index))
  }
}

interface WriteFailure {
  index: number
  errmsg: string
}

function isDuplicate(failure: unknown): failure is WriteFailure {
  return (
    typeof failure === 'object' &&
    failure !== null &&
    'index' in failure &&
    'errmsg' in failure &&
    'code' in failure &&
    failure.code === DUPLICATE_KEY
  )
}
