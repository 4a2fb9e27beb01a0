/** What the provider did with a request. Its answer alone does not tell: it may be a page of the host, or go to the client. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { IncomingMessage } from 'node:http'
import type { Context, Middleware } from 'koa'
import type { KoaContextWithOIDC, Provider } from 'oidc-provider'
import { isStoreUnavailable } from '../errors.ts'

interface Outcome {
  /** What broke while the request was answered. */
  failure?: Error
  /** The interaction that the request began. */
  interaction?: KoaContextWithOIDC['oidc']['entities']['Interaction']
  /** The request that was to be finished was not there any more: its login was ended meanwhile. */
  isGone?: boolean
}

const outcomes = new WeakMap<IncomingMessage, Outcome>()

/** Once, when the provider is there. */
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

/** What a request has waited for in vain. */
const request = new AsyncLocalStorage<{ error?: unknown }>()

/** Whether what runs is of a request that came through our middleware. */
export const isOurs = () => request.getStore() !== undefined

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
