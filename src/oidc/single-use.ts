import { errors, type Adapter } from 'oidc-provider'
import { OAUTH_MODELS } from './account-stamp.ts'

/** Models whose records are used once: the first `consume` wins, and no later `upsert` makes them fresh again. */
const CONSUMED_ONCE = new Set([
  'AuthorizationCode',
  'RefreshToken',
  'DeviceCode',
  'BackchannelAuthenticationRequest',
  'PreAuthorizedCode',
  'PushedAuthorizationRequest',
])

/** Which record of that id, if there is one, an `upsert` may replace. */
export function mayReplace(model: string): 'any' | 'not consumed' | 'expired' {
  if (model === 'ReplayDetection') return 'expired'
  return isUsedOnce(model) ? 'not consumed' : 'any'
}

export const isUsedOnce = (model: string) => CONSUMED_ONCE.has(model)

/**
 * Ends the whole grant if a second use comes at the same moment as the first (RFC 6749, 4.1.2; RFC 9700, 4.14). oidc-provider
 * does the same for a later one. The grant goes first: without it, all that the first use still makes is dead.
 *
 * @throws as `refuseUsed`.
 */
export async function refuseReuse(
  model: string,
  grantId: string | undefined,
  adapterOf: (model: string) => Adapter,
): Promise<never> {
  if (grantId !== undefined) {
    await adapterOf('Grant').destroy(grantId)
    await Promise.all(OAUTH_MODELS.map((one) => adapterOf(one).revokeByGrantId(grantId)))
  }
  return refuseUsed(model)
}

/** @throws an error of oidc-provider, which is the answer of the token or authorization endpoint. */
export function refuseUsed(model: string): never {
  if (model === 'ReplayDetection') throw new errors.InvalidRequest('the JWT was already used')
  if (model === 'PushedAuthorizationRequest') {
    throw new errors.InvalidRequestUri('request_uri is invalid, expired, or was already used')
  }
  throw new errors.InvalidGrant('it was already used')
}
