/** If the store cannot be reached, a request waits for it once, and we answer in place of the provider. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Context, Middleware } from 'koa'
import { isStoreUnavailable } from '../errors.ts'
import { outcomeOf } from './provider-answers.ts'

/** The first failure of the store in this request. */
const request = new AsyncLocalStorage<{ error?: unknown }>()

/** Whether the request came through our middleware. */
export const passedOurMiddleware = () => request.getStore() !== undefined

/** Fails at once if this request has already waited for the store in vain. */
export async function failingFast<T>(work: () => Promise<T>): Promise<T> {
  const outage = request.getStore()
  if (outage?.error) throw outage.error
  try {
    return await work()
  } catch (error) {
    if (outage && isStoreUnavailable(error)) outage.error = error
    throw error
  }
}

/** Answers in place of the provider, which would answer 500. */
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
