/** The server cannot start, and the operator can mend it: one sentence that names the environment variable. */
export class StartRefused extends Error {
  constructor(sentence: string, options?: ErrorOptions) {
    super(sentence, options)
    this.name = 'StartRefused'
  }
}

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
