/** What a suite has from its first hook to its end. It is there, and empty, before. */
export function suiteOf<T extends object>(
  start: (made: T) => Promise<T>,
  end: (made: T) => unknown,
): T {
  const made = {} as T
  let isMade = false
  before('what the suite needs is there', async function () {
    this.timeout(600_000)
    Object.assign(made, await start(made))
    isMade = true
  })
  after(async function () {
    this.timeout(600_000)
    if (isMade) await end(made)
  })
  return made
}
