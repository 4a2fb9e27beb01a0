import type { Requester } from '../ports.ts'

export interface RequesterFields {
  address?: string
  user_agent?: string
}

export const requesterTypes = { address: 'string', user_agent: 'string' } as const

export function toRequesterFields({ address, userAgent }: Partial<Requester>): RequesterFields {
  return {
    ...(address !== undefined && { address }),
    ...(userAgent !== undefined && { user_agent: userAgent }),
  }
}

export function fromRequesterFields({ address, user_agent }: RequesterFields): Requester {
  return { address, userAgent: user_agent }
}
