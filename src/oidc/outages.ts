/** If the store cannot be reached, a request waits for it once, and we answer in place of the provider. */
import type { Context, Middleware } from 'koa'
import { isStoreUnavailable } from '../errors.ts'
import { outcomeOf } from './provider-answers.ts'

/** The first failure of the store in a request. */
export interface Outage {
  error?: unknown
}

export type Outages = ReturnType<typeof createOutages>

/** @param outage - of this request. */
export function createOutages(outage: () => Outage) {
  /** Fails at once if this request has already waited for the store in vain. */
  async function failingFast<T>(work: () => Promise<T>): Promise<T> {
    const first = outage()
    if (first.error) throw first.error
    try {
      return await work()
    } catch (error) {
      if (isStoreUnavailable(error)) first.error = error
      throw error
    }
  }

  /** Answers in place of the provider, which would answer 500. */
  function answeringOutages(answer: (ctx: Context, error: unknown) => void): Middleware {
    return async (ctx, next) => {
      try {
        await next()
      } catch (error) {
        if (!isStoreUnavailable(error)) throw error
        outage().error = error
        ctx.status = 500
      }
      const failure = outage().error ?? outcomeOf(ctx.req).failure
      if (ctx.status === 500 && isStoreUnavailable(failure)) answer(ctx, failure)
    }
  }

  return { failingFast, answeringOutages }
}
