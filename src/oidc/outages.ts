import { AsyncLocalStorage } from 'node:async_hooks'
import type { Context, Middleware } from 'koa'
import { isStoreUnavailable } from '../errors.ts'
import { failureOf } from './provider-answers.ts'

interface Outage {
  error?: unknown
}

const request = new AsyncLocalStorage<Outage>()

/** Fails at once where the request has already waited in vain for a store that cannot be reached. */
export async function waitingOnce<T>(work: () => Promise<T>): Promise<T> {
  const outage = request.getStore()
  if (outage?.error) throw outage.error
  try {
    return await work()
  } catch (error) {
    if (outage && isStoreUnavailable(error)) outage.error = error
    throw error
  }
}

/** Answers in place of the provider, which makes a 500 of a store that cannot be reached. */
export function answeringOutages(answer: (ctx: Context, error: unknown) => void): Middleware {
  return async (ctx, next) => {
    const outage: Outage = {}
    try {
      await request.run(outage, next)
    } catch (error) {
      if (!isStoreUnavailable(error)) throw error
      outage.error = error
      ctx.status = 500
    }
    const failure = outage.error ?? failureOf(ctx.req)
    if (ctx.status === 500 && isStoreUnavailable(failure)) answer(ctx, failure)
  }
}
