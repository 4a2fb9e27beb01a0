import { parametersOf } from '../contract/parameters.ts'
import type { Flows } from '../flows/flows.ts'
import type { OpenLogin } from '../flows/other-address.ts'
import type { ClosedLogin } from '../flows/waiting-login.ts'
import type { Clients } from '../oidc/clients.ts'
import type { createResume } from '../oidc/resume.ts'
import { isVoid, type CapturedRequest, type PendingLogin } from '../store/logins.ts'
import type { Blocked, WaitingFault } from '../views/page-locals.ts'
import { parseFields } from './input.ts'
import type { Cooldown } from './mail-forms.ts'
import type { Page, PageParts } from './pages.ts'
import type { Route, Visit } from './dispatcher.ts'

export interface WaitingLoginParts
  extends PageParts, Pick<Flows, 'waitingLogins' | 'verification'> {
  resume: ReturnType<typeof createResume>
  cooldown: Cooldown
}

/** The page of a login that waits for its address to be verified: one form with a code and a button. */
export function waitingLogin(parts: WaitingLoginParts): Route {
  const { waitingLogins, verification, clients, resume, cooldown } = parts

  /** The page goes on waiting, for a mail to the typed address. */
  async function takeOtherAddress(visit: Visit, found: OpenLogin, typed = '') {
    const { browser, requester } = visit
    const { user, login } = found
    const outcome = await waitingLogins.waitForOther(found, typed, requester)
    const isReplaced = outcome === 'replaced'
    if (isReplaced) await cooldown.count('email_verification', user.username, requester)
    if (outcome === 'over' || isReplaced)
      return show(parts, visit, await waitingLogins.find(login.id, browser), { isReplaced })
    await show(parts, visit, found, { fault: { ...faultFrom(outcome, 'too_often'), typed } })
  }

  /** Goes on to the client if the address is verified. The right code verifies it. */
  async function goOn(visit: Visit, found: OpenLogin, code = '') {
    const { status, login } = found
    if (status === 'verified') return finishWaiting(parts, visit, login)
    if (code.trim() === '') return show(parts, visit, found, { fault: { reason: 'not_yet' } })
    const outcome = await verification.confirmByCode(found, code, visit.requester)
    if (outcome === 'verified') return finishWaiting(parts, visit, login)
    if (outcome !== 'over')
      return show(parts, visit, found, { fault: faultFrom(outcome, 'too_many') })
    const latest = await waitingLogins.find(login.id, visit.browser)
    await ('user' in latest ? goOn(visit, latest) : show(parts, visit, latest))
  }

  /** The request goes back to the client, or to the login page. */
  async function leave(visit: Visit, { id, captured }: PendingLogin, how: 'deny' | 'askAgain') {
    const { ctx, next } = visit
    const mayGoBack = await clients.mayFinish(ctx, captured)
    const status = await waitingLogins.leave(id, async () => {
      if (mayGoBack) await resume[how](ctx, next, captured)
      return mayGoBack
    })
    if (status) await show(parts, visit, { status, captured })
  }

  return {
    /** Shows the page again, as after a reload. Only its button goes on. */
    async get(visit) {
      const query = parseFields(visit.ctx.querystring, (name) => name === 'login')
      const id = query?.get('login') ?? ''
      await show(parts, visit, await waitingLogins.find(id, visit.browser))
    },

    tooMany: 'email_verification_rejected',
    async post(visit, { fields }) {
      const action = fields.get('action')
      const found = await waitingLogins.find(fields.get('login') ?? '', visit.browser)
      if (!('user' in found)) return show(parts, visit, found)
      if (action === 'replace_email') return takeOtherAddress(visit, found, fields.get('email'))
      if (action === 'cancel') return leave(visit, found.login, 'deny')
      if (action === 'other_account') return leave(visit, found.login, 'askAgain')
      await goOn(visit, found, fields.get('code'))
    },
  }
}

/** A number: milliseconds to wait. */
const faultFrom = (outcome: WaitingFault['reason'] | number, tooMany: WaitingFault['reason']) =>
  typeof outcome === 'number' ? { reason: tooMany, waitMs: outcome } : { reason: outcome }

// Finishes a login whose address is verified, once. It replaces the session of another account, because the password was typed here.
// Another login that verifies at the same moment comes too late to stop this one.
export async function finishWaiting(parts: WaitingLoginParts, visit: Visit, login: PendingLogin) {
  const { id, captured } = login
  const { ctx, next } = visit
  const { waitingLogins, clients, resume, pages } = parts
  // The device already has its answer.
  if (await clients.isFinished(captured))
    return pages.show(ctx, await endPage(clients, 'signed_in', captured))
  if (!(await clients.mayFinish(ctx, captured)))
    return pages.show(ctx, await endPage(clients, 'verified', captured))
  const status = await waitingLogins.inTurn(id, async () => {
    await resume.endForeignSession(ctx, captured.login.accountId)
    return resume.finishInWindow(ctx, next, captured)
  })
  if (status) await show(parts, visit, { status, captured })
}

/** Says "signed in" only if this browser is: the session may be over, or its cookie came after this request was sent. */
async function show(
  parts: WaitingLoginParts,
  visit: Visit,
  found: OpenLogin | ClosedLogin,
  told: Pick<Blocked, 'fault' | 'isReplaced'> = {},
) {
  const { ctx, requester } = visit
  const { pages, clients, cooldown, resume } = parts
  if ('user' in found) {
    const { user, login, awaited } = found
    const waitMs = await cooldown.remaining('email_verification', user.username, requester)
    return pages.show(ctx, await blockedPage(parts, { user, login, awaited, waitMs, ...told }))
  }
  const { status, captured } = found
  const isSignedIn =
    status === 'continued' &&
    captured !== undefined &&
    (await resume.signedInAccount(ctx)) === captured.login.accountId
  pages.show(ctx, await endPage(clients, isSignedIn ? 'signed_in' : 'ended', captured))
}

/** A login that waits, and what else its page says. */
type BlockedLogin = Pick<OpenLogin, 'user' | 'login' | 'awaited'> &
  Pick<Blocked, 'waitMs' | 'isReplaced' | 'fault'>

/** The verification page in mode `blocked` (4.8), or in mode `ended` of a login that is over. */
export async function blockedPage(
  { clients, settings, waitingLogins }: PageParts & Pick<Flows, 'waitingLogins'>,
  { user, login, awaited, ...told }: BlockedLogin,
): Promise<Page<'verify-email'>> {
  const { id, captured } = login
  if (isVoid(login)) return endPage(clients, 'ended', captured)
  const parameters = parametersOf(captured)
  const { client } = await clients.identify(parameters)
  const locals = {
    mode: 'blocked',
    username: user.username,
    waiting: id,
    lifetimeMs: settings().emailVerificationExpiration,
    parameters,
    client,
    ...waitingLogins.addressOf(user, awaited),
    ...told,
  } as const
  return { name: 'verify-email', locals, ...requestOf(captured) }
}

/** The page of a login that waits no more. `captured` is the request of the login, if it was a login of this browser. */
async function endPage(
  clients: Clients,
  mode: 'verified' | 'signed_in' | 'ended',
  captured: CapturedRequest | undefined,
): Promise<Page<'verify-email'>> {
  const client = captured && (await clients.restart(parametersOf(captured)))
  return { name: 'verify-email', locals: { mode, client }, ...(captured && requestOf(captured)) }
}

export function requestOf(captured: CapturedRequest) {
  const uiLocales = captured.params['ui_locales']
  return {
    formMayLeadTo: parametersOf(captured).redirectUri,
    uiLocales: typeof uiLocales === 'string' ? uiLocales : undefined,
  }
}
