/** What the provider did with a request. Its response does not show that: it may be a page of the host, or lead to the client. */
import type { IncomingMessage } from 'node:http'
import type { KoaContextWithOIDC, Provider } from 'oidc-provider'

interface Outcome {
  /** The error that became its answer. */
  failure?: Error
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
