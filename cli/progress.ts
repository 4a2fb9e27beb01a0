const CLEARED_LINE = '\r\u001B[K'

const endings = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Does work that tells how far it is, in one line on stderr that is gone at its end; where no terminal is, it is not shown. */
export async function withProgress<T>(
  work: (tell: (text: string) => void) => Promise<T>,
): Promise<T> {
  const { stderr } = process
  if (!stderr.isTTY) return work(() => undefined)

  function clear() {
    stderr.write(CLEARED_LINE)
    for (const signal of endings) process.off(signal, leave)
  }
  function leave(signal: NodeJS.Signals) {
    clear()
    process.kill(process.pid, signal)
  }

  for (const signal of endings) process.once(signal, leave)
  try {
    return await work((text) => void stderr.write(CLEARED_LINE + text))
  } finally {
    clear()
  }
}
