import type { CapturedRequest, CarriedParameters } from '../../ports/index.ts'

/** The parameters that a pending login is looked for by. */
export function capturedParameters({ params }: CapturedRequest): CarriedParameters {
  const { client_id: clientId, redirect_uri: redirectUri, state } = params
  return {
    ...(typeof clientId === 'string' && { clientId }),
    ...(typeof redirectUri === 'string' && { redirectUri }),
    ...(typeof state === 'string' && { state }),
  }
}
