const ends: (() => Promise<unknown>)[] = []

/** For what is started once in a process and serves all suites that follow. */
export function atEndOfRun(end: () => Promise<unknown>): void {
  ends.push(end)
}

export async function endRun(): Promise<void> {
  for (const end of ends.splice(0)) await end()
}
