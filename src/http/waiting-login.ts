import type { Context, Next } from 'koa'
import type { ClosedLogin, WaitingLogin, WaitingPage } from '../flows/waiting-login.ts'
import type { CapturedRequest, User } from '../contract/index.ts'
import type { CodeFault } from '../views/index.ts'
import { parseFields, type SentForm } from './form.ts'
import type { HttpParts } from './parts.ts'
import { newId } from '../crypto/token.ts'
import { carriedBy } from '../contract/carried-query.ts'
import type { PendingLogin } from '../store/index.ts'
import { isVoid } from '../store/logins.ts'
import type { Page } from './pages.ts'

interface Asked {
  ctx: Context
  next: Next
  waiting: WaitingPage
}

/** The page of a login that waits for its address to be verified: one form with a code and a button. */
export function waitingLogin(parts: HttpParts) {
  const { waitingLogins, browserCookie } = parts

  const waitingOn = (ctx: Context, pendingLoginId = ''): WaitingPage => ({
    pendingLoginId,
    browser: browserCookie.read(ctx.req),
  })

  return {
    /** The page again, as after a reload. Only its button goes on. */
    async get(ctx: Context) {
      const query = parseFields(ctx.querystring, (name) => name === 'login')
      await show(parts, ctx, await waitingLogins.find(waitingOn(ctx, query?.get('login'))))
    },

    async post(ctx: Context, { fields }: SentForm, next: Next) {
      const action = fields.get('action')
      const asked = { ctx, next, waiting: waitingOn(ctx, fields.get('login')) }
      if (action === 'cancel') return leave(parts, asked, 'deny')
      if (action === 'other_account') return leave(parts, asked, 'askAgain')
      await goOn(parts, asked, fields.get('code'))
    },
  }
}

/** Goes on to the client once the address is verified, by the right code at the latest. */
async function goOn(parts: HttpParts, asked: Asked, code = '') {
  const { ctx, waiting } = asked
  const login = await parts.waitingLogins.find(waiting)
  if (!('user' in login)) return show(parts, ctx, login)
  if (login.status === 'verified') return finish(parts, asked, login.captured)
  const outcome = await confirmByCode(parts, ctx, login, code)
  if (outcome === 'confirmed') return finish(parts, asked, login.captured)
  if (outcome) return show(parts, ctx, login, outcome)
  await goOn(parts, asked)
}

/**
 * Finishes a login whose address is verified, once. It replaces the session of another account, because the password was typed here.
 * Another login that verified at the same moment does not stop this one: it came too late.
 */
export async function finish(parts: HttpParts, asked: Asked, captured: CapturedRequest) {
  const { ctx, next, waiting } = asked
  const { waitingLogins, clients, resume, pages } = parts
  // By its device.
  if (await clients.isFinished(captured))
    return pages.show(ctx, await endPage(parts, 'signed_in', captured))
  if (!(await clients.mayFinish(ctx, captured)))
    return pages.show(ctx, await endPage(parts, 'verified', captured))
  let isFinished = true
  const wentOn = await waitingLogins.inTurn(waiting, async () => {
    await resume.endForeignSession(ctx, captured.login.accountId)
    isFinished = await resume.finishInWindow(ctx, next, captured)
  })
  if (!wentOn || !isFinished)
    await show(parts, ctx, { status: wentOn ? 'ended' : 'continued', captured })
}

/** Verifies the address by a code. `undefined`: the login is over, or the account has changed. */
async function confirmByCode(
  { waitingLogins, verification, requesterOf }: HttpParts,
  ctx: Context,
  { login }: WaitingLogin,
  code: string,
): Promise<'confirmed' | CodeFault | undefined> {
  if (code.trim() === '') return { reason: 'not_yet' }
  const by = requesterOf(ctx.req)
  const outcome = await waitingLogins.tryCode(login, code, by)
  if (typeof outcome === 'number') return { reason: 'too_many', waitMs: outcome }
  if (outcome === 'unread' || outcome === 'wrong') return { reason: outcome }
  if (outcome === 'over' || !(await verification.confirmByCode(login, by))) return undefined
  return 'confirmed'
}

/** Ends the login. Its request goes back to the client, or to the login page. */
async function leave(parts: HttpParts, { ctx, next, waiting }: Asked, how: 'deny' | 'askAgain') {
  const { waitingLogins, clients, resume } = parts
  const login = await waitingLogins.find(waiting)
  if (!('user' in login)) return show(parts, ctx, login)
  const { captured } = login
  const mayGoBack = await clients.mayFinish(ctx, captured)
  const isLeft = await waitingLogins.leave(waiting, async () => {
    if (mayGoBack) await resume[how](ctx, next, captured)
  })
  if (!isLeft || !mayGoBack)
    await show(parts, ctx, { status: isLeft ? 'ended' : 'continued', captured })
}

type Found = WaitingLogin | ClosedLogin

/** A login that went on is not always signed in: its session may be over, or its cookie came after this request was sent. */
async function show(parts: HttpParts, ctx: Context, found: Found, fault?: CodeFault) {
  const { pages, cooldown, resume } = parts
  if ('user' in found) {
    const { user, login } = found
    const lifetimeMs = parts.settings().emailVerificationExpiration
    const requester = parts.requesterOf(ctx.req)
    const waitMs = await cooldown.remaining('email_verification', user.username, requester)
    return pages.show(ctx, await blockedPage(parts, { user, login, lifetimeMs, waitMs, fault }))
  }
  const { status, captured } = found
  const isSignedIn =
    status === 'continued' &&
    captured !== undefined &&
    (await resume.signedInAccount(ctx)) === captured.login.accountId
  pages.show(ctx, await endPage(parts, isSignedIn ? 'signed_in' : 'ended', captured))
}

export type PageRequest = Pick<Page, 'formMayLeadTo' | 'uiLocales'>

/** A login that waits for its address to be verified. */
export interface BlockedLogin {
  user: User
  login: PendingLogin
  /** Of its link, and so of its page. */
  lifetimeMs: number
  /** Until another mail may be asked for. `undefined`: at any time. */
  waitMs: number | undefined
  fault?: CodeFault | undefined
}

/** The verification page in mode `blocked` (4.8), or in mode `ended` of a login that is over. */
export async function blockedPage(
  parts: HttpParts,
  { user, login, ...asked }: BlockedLogin,
): Promise<Page<'verify-email'>> {
  const { id, captured } = login
  if (isVoid(login)) return endPage(parts, 'ended', captured)
  const carried = carriedBy(captured)
  const { client } = await parts.clients.identify(carried)
  const whose = { username: user.username, sentTo: user.email ?? undefined, waiting: id }
  const locals = { mode: 'blocked', ...whose, carried, client, ...asked } as const
  return { name: 'verify-email', locals, ...requestOf(captured), formId: newId() }
}

/** The page of a login that waits no more. `captured` is its request, if it was a login of this browser. */
export async function endPage(
  { clients }: HttpParts,
  mode: 'verified' | 'signed_in' | 'ended',
  captured: CapturedRequest | undefined,
): Promise<Page<'verify-email'>> {
  const client = captured && (await clients.restart(carriedBy(captured)))
  return { name: 'verify-email', locals: { mode, client }, ...(captured && requestOf(captured)) }
}

export function requestOf(captured: CapturedRequest): PageRequest {
  const uiLocales = captured.params['ui_locales']
  return {
    formMayLeadTo: carriedBy(captured).redirectUri,
    uiLocales: typeof uiLocales === 'string' ? uiLocales : undefined,
  }
}
