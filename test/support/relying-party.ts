import * as client from 'openid-client'

/** One authorization request of a real relying party, and what it keeps to finish it. */
export interface AuthorizationRequest {
  url: URL
  redirectUri: string
  codeVerifier: string
  state: string
  nonce: string
}

export interface RelyingParty extends Awaited<ReturnType<typeof createRelyingParty>> {}

interface RelyingPartyOptions {
  clientId: string
  redirectUri: string
  clientSecret?: string
}

export async function createRelyingParty(
  issuer: string,
  { clientId, redirectUri, clientSecret }: RelyingPartyOptions,
) {
  const auth = clientSecret === undefined ? client.None() : client.ClientSecretBasic(clientSecret)
  const config = await client.discovery(new URL(issuer), clientId, undefined, auth, {
    execute: [client.allowInsecureRequests],
  })

  return {
    config,
    redirectUri,

    async begin(extra: Record<string, string> = {}): Promise<AuthorizationRequest> {
      const codeVerifier = client.randomPKCECodeVerifier()
      const state = client.randomState()
      const nonce = client.randomNonce()
      const url = client.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        scope: 'openid email',
        code_challenge: await client.calculatePKCECodeChallenge(codeVerifier),
        code_challenge_method: 'S256',
        state,
        nonce,
        ...extra,
      })
      return { url, redirectUri, codeVerifier, state, nonce }
    },

    /** Redeems the code of a redirect back to the client; checks state, nonce, iss and PKCE. */
    exchange: ({ codeVerifier, state, nonce }: AuthorizationRequest, location: string) =>
      client.authorizationCodeGrant(config, new URL(location), {
        pkceCodeVerifier: codeVerifier,
        expectedState: state,
        expectedNonce: nonce,
        idTokenExpected: true,
      }),
  }
}
