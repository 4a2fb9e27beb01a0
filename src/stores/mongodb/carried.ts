import type { CarriedParameters } from '../../ports/index.ts'
import type { FieldTypes } from './values.ts'

/** An absent parameter is an absent field, an empty one an empty string. */
export interface CarriedFields {
  client_id?: string
  redirect_uri?: string
  scope?: string
  state?: string
}

export const carriedTypes: FieldTypes = {
  client_id: 'string',
  redirect_uri: 'string',
  scope: 'string',
  state: 'string',
}

export function toCarriedFields(carried: CarriedParameters): CarriedFields {
  return {
    ...(carried.clientId !== undefined && { client_id: carried.clientId }),
    ...(carried.redirectUri !== undefined && { redirect_uri: carried.redirectUri }),
    ...(carried.scope !== undefined && { scope: carried.scope }),
    ...(carried.state !== undefined && { state: carried.state }),
  }
}

export function fromCarriedFields(fields: CarriedFields): CarriedParameters {
  return {
    ...(fields.client_id !== undefined && { clientId: fields.client_id }),
    ...(fields.redirect_uri !== undefined && { redirectUri: fields.redirect_uri }),
    ...(fields.scope !== undefined && { scope: fields.scope }),
    ...(fields.state !== undefined && { state: fields.state }),
  }
}
