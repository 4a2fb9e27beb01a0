import { setImmediate as turn } from 'node:timers/promises'

/** So many turns of the event loop later: one of two requests comes a little after the other. */
export async function turns(count: number): Promise<void> {
  for (let done = 0; done < count; done += 1) await turn()
}
