/** Where warnings and failures go: never a token, a password, a key or a typed identifier. */
export type Log = (
  level: 'info' | 'warn' | 'error',
  message: string,
  details?: Record<string, string | number | string[]>,
) => void
