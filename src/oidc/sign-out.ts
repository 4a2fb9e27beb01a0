import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Provider } from 'oidc-provider'

/**
 * Tells of each person who signed out of the provider (RP-Initiated Logout), before the answer leaves; not of one who stayed, nor
 * where nobody was signed in: the provider asks no question then, and any site can lead a browser there.
 */
export function onSignOut(
  provider: Provider,
  signedOut: (req: IncomingMessage, res: ServerResponse) => void,
): void {
  provider.on('end_session.success', (ctx) => {
    const { params, session } = ctx.oidc
    if (params?.['logout'] && session?.accountId !== undefined) signedOut(ctx.req, ctx.res)
  })
}
