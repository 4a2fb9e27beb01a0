import { createHmac } from 'node:crypto'
import {
  interactionPolicy,
  type AdapterFactory,
  type Configuration,
  type Provider,
} from 'oidc-provider'
import type { AccountFlows, UserStore } from '../../src/index.ts'
import { firstPartyGrant } from './consent.ts'
import { derivedKey, type ProviderKeys } from './keys.ts'
import type { Paths, ShowPage } from './page.ts'
import { providerPages } from './provider-pages.ts'
import type { Storage } from './storage.ts'

type Client = InstanceType<Provider['Client']>

export interface ProviderParts {
  flows: Pick<AccountFlows, 'policy'>
  adapter: AdapterFactory
  storage: Pick<Storage, 'users' | 'providerKeys'>
  cookieKeys: string[]
  paths: Paths
  show: ShowPage
}

const MINUTE = 60
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** The lines that belong to the account flows are `adapter`, `interactions` and `findAccount`. */
export function providerConfiguration(parts: ProviderParts): Configuration {
  const { flows, storage, paths, show } = parts
  const pages = providerPages(show)
  return {
    adapter: parts.adapter,
    interactions: {
      url: (_ctx, { uid }) => `${paths.oauth}/login?interaction=${uid}`,
      policy: flows.policy(interactionPolicy.base()),
    },
    findAccount: (_ctx, id) => findAccount(storage.users, id),
    loadExistingGrant: firstPartyGrant,
    jwks: storage.providerKeys,
    cookies: { keys: parts.cookieKeys },
    claims: {
      openid: ['sub'],
      profile: ['preferred_username'],
      email: ['email', 'email_verified'],
    },
    subjectTypes: ['public', 'pairwise'],
    pairwiseIdentifier: pairwiseSubjects(storage.providerKeys),
    features: {
      backchannelLogout: { enabled: true },
      devInteractions: { enabled: false },
      claimsParameter: { enabled: true },
      clientCredentials: { enabled: true },
      deviceFlow: { enabled: true, ...pages.deviceFlow },
      introspection: { enabled: true, allowedPolicy: isOwnOrAuthenticated },
      jwtResponseModes: { enabled: true },
      pushedAuthorizationRequests: { enabled: true },
      requestObjects: { enabled: true },
      resourceIndicators: {
        enabled: true,
        // Opaque, so that a password reset ends them: nobody can take back a JWT.
        getResourceServerInfo: () => ({ scope: 'read write', accessTokenFormat: 'opaque' }),
      },
      revocation: { enabled: true, allowedPolicy: isOwn },
      rpInitiatedLogout: { enabled: true, ...pages.logout },
    },
    renderError: pages.renderError,
    ttl: {
      AccessToken: HOUR,
      AuthorizationCode: MINUTE,
      BackchannelAuthenticationRequest: 10 * MINUTE,
      ClientCredentials: 10 * MINUTE,
      DeviceCode: 10 * MINUTE,
      Grant: 14 * DAY,
      IdToken: HOUR,
      Interaction: HOUR,
      RefreshToken: 14 * DAY,
      Session: 14 * DAY,
    },
  }
}

/** The salt comes from the first key of the provider, which stays while those of SIGNING_KEYS are rotated. */
function pairwiseSubjects({ keys: [first] }: ProviderKeys) {
  const salt = derivedKey(first?.d ?? '', 'pairwise subjects')
  return (_ctx: unknown, accountId: string, { sectorIdentifier = '' }: Client) =>
    createHmac('sha256', salt)
      .update(JSON.stringify([sectorIdentifier, accountId]))
      .digest('base64url')
}

type AboutToken = (
  ctx: unknown,
  client: Client,
  token: { clientId?: string | undefined },
) => boolean

const isOwn: AboutToken = (_ctx, client, token) => token.clientId === client.clientId

const isOwnOrAuthenticated: AboutToken = (ctx, client, token) =>
  client.clientAuthMethod !== 'none' || isOwn(ctx, client, token)

/** An account that is disabled or gone is nobody: its tokens stop to work at once. */
async function findAccount(users: UserStore, id: string) {
  const user = await users.findById(id)
  if (!user || user.disabled) return undefined
  const { username, email, emailVerified } = user
  return {
    accountId: id,
    claims: () => ({
      sub: id,
      preferred_username: username,
      ...(email !== undefined && { email, email_verified: emailVerified }),
    }),
  }
}
