/** So many may be inside. Those in line come in once so many places are free, several at a time. */
interface Room {
  most: number
  wave: number
}

export type Gate = ReturnType<typeof createGate>

/**
 * Lets in so many at once; the others wait in line.
 *
 * @param room - may change from one moment to the next.
 */
export function createGate(room: () => Room) {
  const line = new Set<() => void>()
  let inside = 0

  return {
    /** `false`: the signal aborted before there was room. */
    async enter(signal: AbortSignal): Promise<boolean> {
      if (signal.aborted) return false
      if (line.size === 0 && inside < room().most) {
        inside += 1
        return true
      }
      let goOn = () => {}
      const waiting = new Promise<void>((resolve) => (goOn = resolve))
      line.add(goOn)
      signal.addEventListener('abort', goOn)
      await waiting
      signal.removeEventListener('abort', goOn)
      return !line.delete(goOn)
    },

    /** Comes in past the line. */
    take() {
      inside += 1
    },

    leave() {
      inside -= 1
      const { most, wave } = room()
      if (most - inside < wave) return
      for (const goOn of line) {
        if (inside >= most) return
        inside += 1
        line.delete(goOn)
        goOn()
      }
    },

    isEmpty: () => inside === 0,
  }
}
