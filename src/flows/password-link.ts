/** The link of a reset (3.1) or an invitation (3.4) once it is opened. `http/mail-forms.ts` requests it, `mail/` sends it; its effects are in `new-password.ts`. */
import { oneAtATime, type Clock } from '../clock.ts'
import { isForFirst } from '../crypto/password.ts'
import { hashToken, isToken } from '../crypto/token.ts'
import type { LinkReason, Requester } from '../contract/index.ts'
import { MAIL_KINDS, type PasswordLinkKind } from '../contract/mail-kinds.ts'
import { refusePassword } from '../passwords/passwords.ts'
import { endOf, type Token } from '../store/tokens.ts'
import type { SignedOutApps } from '../views/page-locals.ts'
import { isUnchanged } from './account.ts'
import {
  faultOf,
  findLink,
  linkContext,
  requestRenewal,
  UNKNOWN,
  type LinkContext,
} from './link-state.ts'
import { auditRejected, finishPassword } from './new-password.ts'
import type { FlowParts, PasswordLinkParts } from './parts.ts'
import { wasVoided } from './void-links.ts'

export function createPasswordLink(flowParts: FlowParts, kind: PasswordLinkKind) {
  const { clock, log, store } = flowParts
  const tokens = store[MAIL_KINDS[kind].link.tokens]
  const parts: PasswordLinkParts = { ...flowParts, kind, tokens }
  const oneByOne = oneAtATime()
  let underWay = Promise.resolve<unknown>(undefined)

  const logIncomplete = (error: unknown) =>
    log('error', 'the maintenance has to complete a new password', { error: String(error) })

  async function setPassword(form: PasswordForm, requester: Requester) {
    // Of many forms with one token, only the password of the first is hashed. The others find the token used.
    const claimed = await oneByOne(form.token, () => claim(parts, form, requester))
    if (!claimed) return { answer: await refuse(parts, await find(parts, form.token), requester) }
    if ('refusal' in claimed) return { answer: claimed }
    const { reset, account } = claimed
    const done = await finishPassword(parts, reset, account, 'request')
    if (!done) return { answer: faultOf(reset, 'changed') }
    const completing = done.complete().catch(logIncomplete)
    return { answer: { ...linkContext(reset), apps: done.apps }, completing }
  }

  return {
    /** Whether a link opens the form (4.3). It consumes nothing; for a usable link it costs two reads. */
    async open(token: string): Promise<LinkContext | RefusedLink> {
      const found = await find(parts, token)
      if (!found) return UNKNOWN
      // Checks the account too, so that no user chooses a password in vain.
      return found.state === 'usable' ? linkContext(found.token) : faultOf(found.token, found.state)
    },

    async renew(token: string, by: Requester, form?: string): Promise<LinkContext | RefusedLink> {
      const found = await find(parts, token)
      // A usable link is as good for this as an expired one.
      if (found?.state !== 'expired' && found?.state !== 'usable') return refuse(parts, found, by)
      return requestRenewal(parts, kind, found.token, by, form)
    },

    /** Sets a new password (4.4). A refusal leaves the token usable, and so does an error of `passwords.hash`. The answer names no account. */
    async complete(form: PasswordForm, requester: Requester) {
      const setting = setPassword(form, requester)
      underWay = underWay.then(async () => (await setting).completing).catch(() => {})
      return (await setting).answer
    },

    /** Resolves when all work for the forms that were sent by now is done. */
    settled: () => underWay,

    /** Finishes resets that a dead process left between two effects. */
    async finishUnfinished(): Promise<void> {
      for (;;) {
        const reset = await tokens.takeUnfinished(clock.now(), leaseEnd(clock))
        if (!reset) return
        const account = await parts.users.findById(reset.userId)
        await (await finishPassword(parts, reset, account, 'maintenance'))?.complete()
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

export interface CompletedLink extends LinkContext {
  apps: SignedOutApps | undefined
}

async function find(parts: PasswordLinkParts, token: string) {
  const found = await findLink(parts, parts.kind, token)
  // Anyone may ask for a reset link, so a void one may be renewed. A void invitation may not.
  const isOver = parts.kind === 'invitation' && found?.state === 'expired' && wasVoided(found.token)
  return isOver ? ({ ...found, state: 'changed' } as const) : found
}

type FoundLink = Awaited<ReturnType<typeof find>>

async function refuse(parts: PasswordLinkParts, found: FoundLink, by: Requester) {
  if (!found || found.state === 'usable') return UNKNOWN
  await auditRejected(parts, found.token, found.end, by)
  return faultOf(found.token, found.state)
}

/** Short, because a dead process leaves old sessions alive. If the maintenance repeats the effects of a slow process, that does no harm. */
const LEASE_MS = 10_000

const leaseEnd = ({ now }: Clock) => new Date(now().getTime() + LEASE_MS)

/** Hashes first, so that a process that dies meanwhile leaves the token usable. `undefined`: the token cannot be used. */
async function claim(parts: PasswordLinkParts, form: PasswordForm, by: Requester) {
  const { tokens, users, settings, clock } = parts
  if (!isToken(form.token)) return undefined
  const found = await tokens.find(hashToken(form.token))
  if (!found || endOf(found, clock.now())) return undefined
  const refused =
    refusePassword(form.password, form.confirmPassword, settings()) ??
    (await validate(parts, found, form.password))
  if (refused) return { ...refused, ...linkContext(found) }

  const newHash = await parts.passwords.hash(form.password, by)
  const claimed = { newHash, by, at: clock.now(), leaseUntil: leaseEnd(clock) }
  const look = () => users.findById(found.userId)
  const [reset, account] = await Promise.all([
    tokens.claim(found, claimed),
    isForFirst(found) ? undefined : look(),
  ])
  // For a first password after the claim: the host may have withdrawn `mayChoosePassword` just before.
  return reset && { reset, account: account ?? (await look()) }
}

/** Checks a password only while the link is usable. Otherwise a refusal would reveal the names or the password of the account. */
async function validate({ passwords, users }: FlowParts, token: Token, password: string) {
  const account = passwords.isAsked() ? await users.findById(token.userId) : undefined
  return account && isUnchanged(token, account) ? passwords.validate(password, account) : undefined
}
