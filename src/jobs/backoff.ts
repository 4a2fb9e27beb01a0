const FIRST_RETRY_MS = 2_000

/** How long to wait before another attempt: about twice as long each time. A random part keeps jobs that failed together apart. */
export function backoffMs(attempts: number, mostMs: number): number {
  const longest = Math.min(FIRST_RETRY_MS * 2 ** (attempts - 1), mostMs)
  return longest / 2 + Math.random() * (longest / 2)
}
