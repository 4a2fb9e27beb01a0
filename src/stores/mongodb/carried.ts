import { CARRIED, carriedFrom } from '../../ports/carried-query.ts'
import type { CarriedParameters } from '../../ports/index.ts'
import type { Fields } from './values.ts'

export const carriedTypes = {
  client_id: 'string',
  redirect_uri: 'string',
  scope: 'string',
  state: 'string',
} as const

/** An absent parameter is an absent field, an empty one an empty string. */
export type CarriedFields = Fields<{}, typeof carriedTypes>

export function toCarriedFields(carried: CarriedParameters): CarriedFields {
  const fields: CarriedFields = {}
  for (const [field, name] of CARRIED) {
    const value = carried[field]
    if (value !== undefined) fields[name] = value
  }
  return fields
}

export const fromCarriedFields = (fields: CarriedFields): CarriedParameters =>
  carriedFrom({ get: (name) => fields[name] })
