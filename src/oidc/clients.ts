import type { Provider } from 'oidc-provider'
import type { CarriedParameters } from '../ports.ts'

/** What the flows need to know of a registered client. */
export interface RegisteredClient {
  clientName: string
  /** oidc-provider's own comparison: as a string; of a native client's loopback address all but the port (RFC 8252, 7.3). */
  redirectUriAllowed(redirectUri: string): boolean
}

export interface Clients {
  /** `undefined`: no such client is registered. */
  find(clientId: string): Promise<RegisteredClient | undefined>
  /**
   * The carried parameters when they name a registered client, and a redirect URI of its own; otherwise none of them, so that
   * nothing unregistered is ever signed, mailed, rendered or followed (D13).
   */
  genuine(carried: CarriedParameters): Promise<CarriedParameters>
  /**
   * Where the client of genuine parameters starts a login anew: its own address for that (OpenID Connect Core, section 4), or a
   * new authorization request, which only a client that needs no PKCE can finish. `undefined`: there is no such place.
   */
  restart(carried: CarriedParameters): Promise<{ clientName: string; href: string } | undefined>
}

export function createClients(provider: () => Provider): Clients {
  async function find(clientId: string): Promise<RegisteredClient | undefined> {
    const client = await provider().Client.find(clientId)
    return (
      client && {
        clientName: client.clientName ?? client.clientId,
        redirectUriAllowed: (redirectUri) => client.redirectUriAllowed(redirectUri),
      }
    )
  }

  async function genuine(carried: CarriedParameters): Promise<CarriedParameters> {
    const { clientId, redirectUri } = carried
    if (clientId === undefined || redirectUri === undefined) return {}
    const client = await find(clientId)
    return client?.redirectUriAllowed(redirectUri) ? carried : {}
  }

  return {
    find,
    genuine,

    async restart(carried) {
      const { clientId, redirectUri, scope, state } = await genuine(carried)
      const client = clientId === undefined ? undefined : await provider().Client.find(clientId)
      if (!client || clientId === undefined || redirectUri === undefined) return undefined
      const clientName = client.clientName ?? clientId
      if (client.initiateLoginUri !== undefined) {
        const href = new URL(client.initiateLoginUri)
        href.searchParams.set('iss', provider().issuer)
        return { clientName, href: href.href }
      }
      if (client.tokenEndpointAuthMethod === 'none') {
        return client.clientUri === undefined ? undefined : { clientName, href: client.clientUri }
      }
      const query = new URLSearchParams({ response_type: 'code', client_id: clientId })
      query.set('redirect_uri', redirectUri)
      if (scope !== undefined) query.set('scope', scope)
      if (state !== undefined) query.set('state', state)
      const path = provider().pathFor('authorization', { mountPath: '' })
      return { clientName, href: `${provider().issuer}${path}?${query.toString()}` }
    },
  }
}
