/** Not `instanceof`: the host's driver may be another copy of the package. */
export function serverErrorCode(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}

export function isDuplicateKey(error: unknown): error is Error {
  return serverErrorCode(error) === 11000
}
