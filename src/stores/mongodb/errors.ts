export const DUPLICATE_KEY = 11000

/** Not `instanceof`: the host's driver may be another copy of the package. */
export function serverErrorCode(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}

export function isDuplicateKey(error: unknown): error is Error {
  return serverErrorCode(error) === DUPLICATE_KEY
}

interface WriteFailure {
  index: number
  code: unknown
  errmsg: string
}

/** Of a command with many writes, those that failed. Throws what tells of none. */
export function writeErrors(error: unknown): WriteFailure[] {
  const failures: unknown = error instanceof Error ? Reflect.get(error, 'writeErrors') : undefined
  const found = [failures].flat().filter((failure): failure is WriteFailure => isFailure(failure))
  if (found.length === 0) throw error
  return found
}

function isFailure(failure: unknown): boolean {
  return (
    typeof failure === 'object' && failure !== null && 'index' in failure && 'errmsg' in failure
  )
}
