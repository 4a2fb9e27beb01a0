/** `FAULTS=short` runs every fault test with the same assertions, only fewer rounds and shorter outages. */
export function scaled<T>({ full, short }: { full: T; short: T }): T {
  return process.env['FAULTS'] === 'short' ? short : full
}
