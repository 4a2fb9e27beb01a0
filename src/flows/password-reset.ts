/**
 * Password reset by e-mailed link: sections 3.1 and 3.3 of the specification, in code.
 *
 * | state  | trigger              | here                                       | next        |
 * |--------|----------------------|--------------------------------------------|-------------|
 * | (none) | POST forgot-password | `request`; later in a worker, `kinds.ts`   | unused      |
 * | unused | GET reset-password   | `open`                                     | unused      |
 * | unused | POST reset-password  | `complete`                                 | used        |
 * | unused | a newer request      | in a worker, `kinds.ts`                    | invalidated |
 * | unused | time passes          | compared in every look-up                  | expired     |
 * | any    | a new link from it   | `renew`; later in a worker, `kinds.ts`     |             |
 */
import { requestMail } from '../jobs/request.ts'
import type { CarriedParameters, Requester } from '../contract/index.ts'
import type { FlowParts } from './parts.ts'
import { createPasswordLink } from './password-link.ts'

export function createPasswordReset(parts: FlowParts) {
  const { outbox, settings, clock } = parts
  return {
    ...createPasswordLink(parts, 'password_reset'),

    /** Asks for a link (4.2). The same work for every identifier, and no answer. */
    request(identifier: string, carried: CarriedParameters, by: Requester, form?: string) {
      const wanted = { kind: 'password_reset', identifier, carried, requester: by, form } as const
      return requestMail(outbox, wanted, settings(), clock.now())
    },
  }
}
