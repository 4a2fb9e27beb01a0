/**
 * Password reset by e-mailed link: sections 3.1 and 3.3 of the specification, in code.
 *
 * | state  | trigger              | here                                       | next        |
 * |--------|----------------------|--------------------------------------------|-------------|
 * | (none) | POST forgot-password | `request`; later in a worker, `reset-mail` | unused      |
 * | unused | GET reset-password   | `open`                                     | unused      |
 * | unused | POST reset-password  | `complete`                                 | used        |
 * | unused | a newer request      | in a worker, `reset-mail`                  | invalidated |
 * | unused | time passes          | compared in every look-up                  | expired     |
 * | any    | a new link from it   | `renew`; later in a worker, `reset-mail`   |             |
 */
import { requestMail } from '../jobs/request.ts'
import type { CarriedParameters, Requester } from '../contract/index.ts'
import type { FlowParts } from './parts.ts'
import { oneAtATime } from '../crypto/hash-queue.ts'
import { refusePassword } from '../crypto/password.ts'
import { hashToken, isToken } from '../crypto/token.ts'
import { MAIL_KINDS, type PasswordLinkKind } from '../contract/mail-kinds.ts'
import { endOf } from '../store/token-end.ts'
import { wasVoided } from './account.ts'
import {
  auditRejected,
  finishPassword,
  leaseEnd,
  type PasswordLinkParts,
} from './finish-password.ts'
import type { LinkReason } from '../contract/links.ts'
import type { Token } from '../store/index.ts'
import type { SignedOutApps } from '../views/page-locals.ts'
import { findLink, linkContext, linkState, type FoundLink, type LinkContext } from './link.ts'

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

/** A mailed link opens a form, which sets a password: of a reset (3.1) or of an invitation (3.4). */

export function createPasswordLink(flow: FlowParts, kind: PasswordLinkKind) {
  const parts = { ...flow, kind, tokens: flow[MAIL_KINDS[kind].link.tokens] }
  const { outbox, settings, clock, log } = parts
  const oneByOne = oneAtATime()
  let underWay = Promise.resolve<unknown>(undefined)

  const toBeSwept = (error: unknown) =>
    log('error', 'the sweep has to complete a new password', { error: String(error) })

  async function setPassword(form: PasswordForm, requester: Requester) {
    // Of many forms with one token only the first is hashed: the others find the token used.
    const claimed = await oneByOne(form.token, () => claim(parts, form, requester))
    if (!claimed) return { told: await refuse(parts, await find(parts, form.token), requester) }
    if ('refusal' in claimed) return { told: claimed }
    const { reset, account } = claimed
    const done = await finishPassword(parts, reset, account, 'request')
    if (!done) return { told: faultOf(reset, 'changed') }
    return { told: { carried: reset.carried, apps: done.apps }, complete: done.complete }
  }

  return {
    /** Whether a link opens the form (4.3). It consumes nothing; for a usable link it costs two reads. */
    async open(token: string): Promise<LinkContext | RefusedLink> {
      const found = await find(parts, token)
      if (!found) return UNKNOWN
      // By its account too, so that no user chooses a password in vain.
      return found.state === 'usable' ? linkContext(found.token) : faultOf(found.token, found.state)
    },

    /** Asks for a new link in place of a genuine one that expired. */
    async renew(token: string, by: Requester, form?: string): Promise<LinkContext | RefusedLink> {
      const found = await find(parts, token)
      // A usable link is as good for this as an expired one.
      if (found?.state !== 'expired' && found?.state !== 'usable') return refuse(parts, found, by)
      const { userId: accountId, carried, locale } = found.token
      const requester = { ...by, uiLocales: by.uiLocales ?? locale }
      const wanted = { kind, accountId, carried, requester, form }
      await requestMail(outbox, wanted, settings(), clock.now())
      return linkContext(found.token)
    },

    /**
     * Sets a new password (4.4). A refusal leaves the token usable, and so does an error of `hashPassword`. The answer names no account,
     * because another person may have asked for the link.
     */
    async complete(form: PasswordForm, requester: Requester) {
      const setting = setPassword(form, requester)
      const completing = setting.then(
        ({ complete }) => complete?.().catch(toBeSwept),
        () => {},
      )
      underWay = underWay.then(() => completing)
      return (await setting).told
    },

    /** Resolves once nothing is left to do of the forms that were sent by now. */
    settled: () => underWay,

    /** Finishes resets that a dead process left between two effects. */
    async sweep(): Promise<void> {
      for (;;) {
        const reset = await parts.tokens.takeUnfinished(clock.now(), leaseEnd(parts))
        if (!reset) return
        const account = await parts.users.findById(reset.userId)
        await (await finishPassword(parts, reset, account, 'sweep'))?.complete()
      }
    },
  }
}

export interface PasswordForm {
  token: string
  password: string
  confirmPassword: string
}

export type RefusedLink = LinkContext & { fault: LinkReason }

export interface CompletedLink {
  carried: CarriedParameters
  apps: SignedOutApps | undefined
}

const UNKNOWN = { fault: 'unknown', carried: {} } as const

const faultOf = (token: Token, fault: LinkReason) => ({ fault, ...linkContext(token) })

async function find(
  { kind, tokens, users, clock }: PasswordLinkParts,
  token: string,
): Promise<FoundLink | undefined> {
  const found = await findLink(tokens, users, token, clock.now())
  // Anyone may ask for another reset link, but a void invitation stays void.
  const isOver = kind === 'invitation' && found?.state === 'expired' && wasVoided(found.token)
  return isOver ? { ...found, state: 'changed' } : found
}

// Nothing is recorded or shown of an unknown token.
async function refuse(
  parts: PasswordLinkParts,
  found: FoundLink | undefined,
  by: Requester,
): Promise<RefusedLink> {
  if (!found || found.state === 'usable') return UNKNOWN
  await auditRejected(parts, found.token, found.end, by)
  return faultOf(found.token, found.state)
}

/** Hashes first, so that a process that dies meanwhile leaves the token usable. `undefined`: the token cannot be used. */
async function claim(parts: PasswordLinkParts, form: PasswordForm, by: Requester) {
  const { tokens, users, settings, clock } = parts
  if (!isToken(form.token)) return undefined
  const found = await tokens.find(hashToken(form.token))
  if (!found || endOf(found, clock.now())) return undefined
  const refused =
    refusePassword(form.password, form.confirmPassword, settings()) ??
    (await judge(parts, found, form.password))
  if (refused) return { ...refused, carried: found.carried }

  const newHash = await parts.hashPassword(form.password, by)
  const leaseUntil = leaseEnd(parts)
  // Also the account, because it may have changed since the form was sent.
  const [reset, account] = await Promise.all([
    tokens.claim(found, { newHash, by, at: clock.now(), leaseUntil }),
    users.findById(found.userId),
  ])
  return reset && { reset, account }
}

/** Only if the link is still for the account. Otherwise a refusal would reveal its names or its password. */
async function judge(
  { passwordJudge, users, clock }: PasswordLinkParts,
  token: Token,
  password: string,
) {
  if (!passwordJudge.isAsked()) return undefined
  const account = await users.findById(token.userId)
  if (!account || linkState(token, account, clock.now()) !== 'usable') return undefined
  return passwordJudge.judge(password, account)
}
