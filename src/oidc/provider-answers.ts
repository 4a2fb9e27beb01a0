/** What the provider did with a request. Its response does not show that: it may be a page of the host, or lead to the client. */
import type { IncomingMessage } from 'node:http'
import type { KoaContextWithOIDC, Provider } from 'oidc-provider'
import type { Context, Middleware } from 'koa'
import { isStoreUnavailable } from '../errors.ts'

interface Outcome {
  /** The error that became its answer. */
  failure?: Error
  /** The interaction that the request began. */
  interaction?: KoaContextWithOIDC['oidc']['entities']['Interaction']
  /** The interaction was gone, because its login was ended meanwhile. */
  isGone?: boolean
}

const outcomes = new WeakMap<IncomingMessage, Outcome>()

/** Call it once, when the provider is attached. */
export function watchAnswers(provider: Provider): void {
  const note = ({ req }: { req: IncomingMessage }, outcome: Outcome) =>
    outcomes.set(req, { ...outcomes.get(req), ...outcome })
  provider.on('server_error', (ctx, failure) => note(ctx, { failure }))
  provider.on('interaction.started', (ctx) =>
    note(ctx, { interaction: ctx.oidc.entities.Interaction }),
  )
  const noteGone = (ctx: { req: IncomingMessage }, { name }: Error) =>
    name === 'SessionNotFound' && note(ctx, { isGone: true })
  provider.on('authorization.error', noteGone)
  provider.on('device_resume.error', noteGone)
}

export const outcomeOf = (req: IncomingMessage): Outcome => outcomes.get(req) ?? {}

/** The first failure of the store in a request. */
export interface Outage {
  error?: unknown
}

export type Outages = ReturnType<typeof createOutages>

/**
 * If the store cannot be reached, a request waits for it once, and we answer in place of the provider.
 *
 * @param outage - of this request.
 */
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
