export const IS_SHORT = process.env['FAULTS'] === 'short'

/** `FAULTS=short` runs every fault test with the same assertions, only fewer rounds and shorter outages. */
export function scaled<T>({ full, short }: { full: T; short: T }): T {
  return IS_SHORT ? short : full
}
