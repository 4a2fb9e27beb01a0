import { endings, type Ending, type Io } from './io.ts'

const CLEARED_LINE = '\r\u001B[K'

/** Does work that tells how far it is, in one line on stderr that is gone at its end; where no terminal is, it is not shown. */
export async function withProgress<T>(
  io: Io,
  work: (tell: (text: string) => void) => Promise<T>,
): Promise<T> {
  const { stderr } = io
  if (!stderr.isTTY) return work(() => undefined)

  function clear() {
    stderr.write(CLEARED_LINE)
    for (const signal of endings) io.off(signal, leave)
  }
  function leave(signal: Ending) {
    clear()
    io.kill(io.pid, signal)
  }

  for (const signal of endings) io.once(signal, leave)
  try {
    return await work((text) => void stderr.write(CLEARED_LINE + text))
  } finally {
    clear()
  }
}
