import { createHook } from 'node:async_hooks'
import { setImmediate as turn } from 'node:timers/promises'

/** The jobs that bcrypt was given meanwhile, such as `bcrypt:HashAsyncWorker`, in their order. */
export async function bcryptWork(work: () => Promise<unknown>): Promise<string[]> {
  const jobs: string[] = []
  const hook = createHook({
    init: (_id, type) => {
      if (type.startsWith('bcrypt:')) jobs.push(type)
    },
  }).enable()
  try {
    await work()
  } finally {
    hook.disable()
  }
  return jobs
}

/** So many turns of the event loop later: one of two requests comes a little after the other. */
export async function turns(count: number): Promise<void> {
  for (let done = 0; done < count; done += 1) await turn()
}
