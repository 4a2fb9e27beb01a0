import { createHook } from 'node:async_hooks'

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
