import type { CarriedParameters } from './requests.ts'

/** The carried parameters, and their names on the wire (4.6). */
export const CARRIED: readonly [field: keyof CarriedParameters, name: string][] = [
  ['clientId', 'client_id'],
  ['redirectUri', 'redirect_uri'],
  ['scope', 'scope'],
  ['state', 'state'],
]

/** Appends the carried parameters under their names on the wire; what is absent stays absent. */
export function appendCarried(query: URLSearchParams, carried: CarriedParameters): URLSearchParams {
  for (const [field, name] of CARRIED) {
    const value = carried[field]
    if (value !== undefined) query.append(name, value)
  }
  return query
}

/** The query of the address of a form that goes on with them, in this language. */
export function formQuery(carried: CarriedParameters, uiLocales: string | undefined): string {
  const query = appendCarried(new URLSearchParams(), carried)
  if (uiLocales !== undefined) query.append('ui_locales', uiLocales)
  return query.size > 0 ? `?${query.toString()}` : ''
}

/** Reads them out of a form or a query; what is absent stays absent. */
export function carriedFrom(fields: {
  get(name: string): string | null | undefined
}): CarriedParameters {
  const carried: CarriedParameters = {}
  for (const [field, name] of CARRIED) {
    const value = fields.get(name) ?? undefined
    if (value !== undefined) carried[field] = value
  }
  return carried
}
