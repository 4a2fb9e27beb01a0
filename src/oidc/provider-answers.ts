/** What the provider did with a request. Its answer alone does not tell: it may be a page of the host, or go to the client. */
import type { IncomingMessage } from 'node:http'
import type { KoaContextWithOIDC, Provider } from 'oidc-provider'

type Interaction = KoaContextWithOIDC['oidc']['entities']['Interaction']

const failures = new WeakMap<IncomingMessage, Error>()
const interactions = new WeakMap<IncomingMessage, Interaction>()
const gone = new WeakSet<IncomingMessage>()

/** Once, when the provider is there. */
export function watchAnswers(provider: Provider): void {
  provider.on('server_error', ({ req }, error) => failures.set(req, error))
  provider.on('interaction.started', ({ req, oidc }) =>
    interactions.set(req, oidc.entities.Interaction),
  )
  const note = ({ req }: { req: IncomingMessage }, { name }: Error) => {
    if (name === 'SessionNotFound') gone.add(req)
  }
  provider.on('authorization.error', note)
  provider.on('device_resume.error', note)
}

/** Whether the request that was to be finished was not there any more: its login was ended meanwhile. */
export function wasGone(req: IncomingMessage): boolean {
  return gone.has(req)
}

/** What broke while the request was answered. */
export function failureOf(req: IncomingMessage): Error | undefined {
  return failures.get(req)
}

/** Throws what broke, if anything did. */
export function rethrowFailure(req: IncomingMessage): void {
  const failure = failures.get(req)
  if (failure) throw failure
}

/** The interaction that the request began. `undefined`: it began none. */
export function begunInteraction(req: IncomingMessage): Interaction {
  return interactions.get(req)
}
