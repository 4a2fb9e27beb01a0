/** Lets one loop sleep until there is something to do. */
export interface Bell {
  /** Ends the wait under way, or the next one. */
  ring(): void
  wait(atMostMs: number): Promise<void>
}

export function createBell(): Bell {
  let hasRung = false
  let wakeUp = () => {}

  return {
    ring() {
      hasRung = true
      wakeUp()
    },

    async wait(atMostMs) {
      if (!hasRung) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, atMostMs)
          timer.unref()
          wakeUp = () => {
            clearTimeout(timer)
            resolve()
          }
        })
      }
      hasRung = false
    },
  }
}
