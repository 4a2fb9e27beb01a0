import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Provider } from 'oidc-provider'

/**
 * Reports each person who signs out of the provider (RP-Initiated Logout), before the answer leaves. A person who stays is not
 * reported. Nor is a request without a session: the provider asks no question then, and any site can send a browser there.
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
