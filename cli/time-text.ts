const ISO_TIMES = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g

const UNITS = [
  ['days', 2 * 86_400_000, 86_400_000],
  ['h', 2 * 3_600_000, 3_600_000],
  ['min', 60_000, 60_000],
  ['s', 0, 1_000],
] as const

/** @param now - by the server: the clock of this machine may be wrong. `undefined`: without how long ago. */
export function withTimes(text: string, now: Date | undefined): string {
  return text.replace(ISO_TIMES, (iso) => {
    const at = `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`
    return now === undefined ? at : `${at} (${ageOf(now.getTime() - Date.parse(iso))})`
  })
}

/** @param ms - below 0: in the future. */
function ageOf(ms: number): string {
  const length = Math.abs(ms)
  // The server tells its time to the second.
  if (length < 1_000) return 'just now'
  const [unit, , unitMs] = UNITS.find(([, least]) => length >= least) ?? UNITS[3]
  const long = `${Math.floor(length / unitMs)} ${unit}`
  return ms < 0 ? `in ${long}` : `${long} ago`
}
