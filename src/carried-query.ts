import type { CarriedParameters } from './ports.ts'

/** Appends the carried parameters under their names on the wire; what is absent stays absent. */
export function appendCarried(query: URLSearchParams, carried: CarriedParameters): URLSearchParams {
  const { clientId, redirectUri, scope, state } = carried
  if (clientId !== undefined) query.append('client_id', clientId)
  if (redirectUri !== undefined) query.append('redirect_uri', redirectUri)
  if (scope !== undefined) query.append('scope', scope)
  if (state !== undefined) query.append('state', state)
  return query
}
