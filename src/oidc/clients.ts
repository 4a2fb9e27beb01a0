import { errors, type Provider } from 'oidc-provider'
import { appendCarried } from '../carried-query.ts'
import type { CapturedRequest, CarriedParameters, IdentifiedClient } from '../ports.ts'
import type { ClientLink, ShownClient } from '../views/page-locals.ts'

export interface Clients {
  /** `genuine`, and the name of the client. */
  identify(carried: CarriedParameters): Promise<IdentifiedClient>
  /**
   * The carried parameters when they name a registered client, and a redirect URI of its own; otherwise none of them, so that
   * nothing unregistered is ever signed, mailed, rendered or followed (D13), nor anything too long for an address.
   */
  genuine(carried: CarriedParameters): Promise<CarriedParameters>
  /**
   * Whether the client of a captured request is still registered and may still have what it asked for: the provider checked it
   * when it took the request, and does not again when it is resumed.
   */
  mayFinish(captured: CapturedRequest): Promise<boolean>
  /** The client of genuine parameters, as a page names it. `undefined`: they are not genuine, or there are none. */
  shown(carried: CarriedParameters): Promise<ShownClient | undefined>
  /**
   * Where the client of genuine parameters starts a login anew: its own address for that (OpenID Connect Core, section 4), or a
   * new authorization request, which only a client that needs no PKCE can finish. `undefined`: there is no such place.
   */
  restart(carried: CarriedParameters): Promise<ClientLink | undefined>
}

/** Servers and proxies refuse addresses that are much longer than this. */
const MAX_CARRIED_LENGTH = 4_000

function isTooLong(carried: CarriedParameters): boolean {
  return appendCarried(new URLSearchParams(), carried).toString().length > MAX_CARRIED_LENGTH
}

export function createClients(provider: () => Provider): Clients {
  // A client whose registration cannot be read is as good as none.
  async function find(clientId: string) {
    try {
      return await provider().Client.find(clientId)
    } catch (error) {
      if (error instanceof errors.OIDCProviderError) return undefined
      throw error
    }
  }

  async function genuineClient(carried: CarriedParameters) {
    const { clientId, redirectUri } = carried
    if (clientId === undefined || redirectUri === undefined || isTooLong(carried)) return undefined
    const client = await find(clientId)
    return client?.redirectUriAllowed(redirectUri) ? client : undefined
  }

  return {
    genuine: async (carried) => ((await genuineClient(carried)) ? carried : {}),

    async identify(carried) {
      const client = await genuineClient(carried)
      return client
        ? { carried, clientName: client.clientName ?? client.clientId }
        : { carried: {}, clientName: undefined }
    },

    async mayFinish({ params, deviceCode }) {
      const client = await find(String(params['client_id']))
      if (!client || deviceCode !== undefined) return client !== undefined
      const { redirect_uri: redirectUri, response_type: responseType } = params
      return (
        typeof redirectUri === 'string' &&
        client.redirectUriAllowed(redirectUri) &&
        client.responseTypes?.some((allowed) => allowed === responseType) === true
      )
    },

    async shown(carried) {
      const client = await genuineClient(carried)
      return client && { clientName: client.clientName ?? client.clientId }
    },

    async restart(carried) {
      const client = await genuineClient(carried)
      if (!client) return undefined
      const clientName = client.clientName ?? client.clientId
      if (client.initiateLoginUri !== undefined) {
        const href = new URL(client.initiateLoginUri)
        href.searchParams.set('iss', provider().issuer)
        return { clientName, href: href.href }
      }
      if (client.tokenEndpointAuthMethod === 'none') {
        return client.clientUri === undefined ? undefined : { clientName, href: client.clientUri }
      }
      const query = appendCarried(new URLSearchParams({ response_type: 'code' }), carried)
      const path = provider().pathFor('authorization', { mountPath: '' })
      return { clientName, href: `${provider().issuer}${path}?${query.toString()}` }
    },
  }
}
