import type { Provider } from 'oidc-provider'

/** Whether the provider has back-channel logout switched on: only then it knows the address of a client for it. */
export function tellsClients({ Client }: Provider): boolean {
  const probe: object = Reflect.construct(Client, [
    {
      client_id: 'probe',
      redirect_uris: ['https://client.invalid/'],
      token_endpoint_auth_method: 'none',
      backchannel_logout_uri: 'https://client.invalid/',
    },
  ])
  return Reflect.get(probe, 'backchannelLogoutUri') !== undefined
}
