/** A request that met a store out of reach waits for it once, and is answered by us. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Context, Middleware } from 'koa'
import { isStoreUnavailable } from '../errors.ts'
import { outcomeOf } from './provider-answers.ts'

/** The failure of the store that the request has met. */
const request = new AsyncLocalStorage<{ error?: unknown }>()

/** Whether the request came through our middleware. */
export const passedOurMiddleware = () => request.getStore() !== undefined

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
    const outage: { error?: unknown } = {}
    try {
      await request.run(outage, next)
    } catch (error) {
      if (!isStoreUnavailable(error)) throw error
      outage.error = error
      ctx.status = 500
    }
    const failure = outage.error ?? outcomeOf(ctx.req).failure
    if (ctx.status === 500 && isStoreUnavailable(failure)) answer(ctx, failure)
  }
}
