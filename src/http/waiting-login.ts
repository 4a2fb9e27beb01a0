import type { Context, Next } from 'koa'
import type { FinishedLogin, WaitingLogin, WaitingPage } from '../flows/waiting-login.ts'
import type { WayOut } from '../oidc/resume.ts'
import { carriedBy } from '../ports/carried-query.ts'
import type { CapturedRequest } from '../ports/index.ts'
import type { CodeFault } from '../views/index.ts'
import { parseFields, readForm } from './form.ts'
import type { HttpParts } from './parts.ts'
import { blockedPage, pageOf } from './verify-email-pages.ts'

/** What one request is about: the page that asks, and the login that it waits for. */
interface Asked {
  ctx: Context
  next: Next
  waiting: WaitingPage
}

/** The page of a login that waits for its address to be verified: one form with a code and a button. */
export function waitingLogin(parts: HttpParts) {
  const { waitingLogins, browserCookie, pages } = parts

  const waitingOn = (ctx: Context, pendingLoginId = ''): WaitingPage => ({
    pendingLoginId,
    browser: browserCookie.read(ctx.req),
  })

  return {
    /** The page again, as after a reload; it goes on when its button is pressed. */
    async get(ctx: Context) {
      const query = parseFields(ctx.querystring, (name) => name === 'login')
      const login = await waitingLogins.find(waitingOn(ctx, query?.get('login')))
      if ('user' in login) await showWaiting(parts, ctx, login)
      else await showOver(parts, ctx, login)
    },

    async post(ctx: Context, next: Next) {
      const form = await readForm(ctx)
      if (typeof form === 'string') return pages.showError(ctx, form)
      const action = form.get('action')
      const asked = { ctx, next, waiting: waitingOn(ctx, form.get('login')) }
      if (action === 'cancel') return leave(parts, asked, 'denied')
      if (action === 'other_account') return leave(parts, asked, 'asked_again')
      await goOn(parts, asked, form.get('code'))
    },
  }
}

/** Goes on to the client once the address is verified, by the right code at the latest. */
async function goOn(parts: HttpParts, asked: Asked, code = '') {
  const { ctx, waiting } = asked
  const login = await parts.waitingLogins.find(waiting)
  if (!('user' in login)) return showOver(parts, ctx, login)
  if (login.status === 'verified') return finish(parts, asked, login.captured)
  const outcome = await confirmByCode(parts, ctx, login, code)
  if (outcome === 'confirmed') return finish(parts, asked, login.captured)
  if (outcome) return showWaiting(parts, ctx, login, outcome)
  await goOn(parts, asked)
}

/**
 * Finishes a login whose address is verified, once. The session of another account is replaced: the password was typed in this very
 * browser. Another login that verified at the same moment may have ended this one. It came too late, so this one is finished all the same.
 */
export async function finish(
  parts: HttpParts,
  { ctx, next, waiting }: Asked,
  captured: CapturedRequest,
) {
  const { waitingLogins, clients, resume, pages } = parts
  const page = { status: 200, name: 'verify-email', ...pageOf(captured) } as const
  // The device that waited for it, that is.
  if (await clients.isFinished(captured))
    return pages.show(ctx, { ...page, locals: { mode: 'signed_in' } })
  if (!(await clients.mayFinish(ctx, captured))) {
    const client = await clients.restart(carriedBy(captured))
    return pages.show(ctx, { ...page, locals: { mode: 'verified', client } })
  }
  let isFinished = true
  const wentOn = await waitingLogins.inTurn(waiting, async () => {
    await resume.endForeignSession(ctx, captured.login.accountId)
    isFinished = await resume.waiting(ctx, next, captured)
  })
  if (!wentOn) await showOver(parts, ctx, { status: 'continued', captured })
  else if (!isFinished) await showOver(parts, ctx, { status: 'ended', captured })
}

/** Verifies the address by a code. `undefined`: the login stands in another way now. A fault: it waits still. */
async function confirmByCode(
  { waitingLogins, verification, requesterOf, log }: HttpParts,
  ctx: Context,
  { login }: WaitingLogin,
  code: string,
): Promise<'confirmed' | CodeFault | undefined> {
  if (code.trim() === '') return { reason: 'not_yet' }
  const by = requesterOf(ctx.req)
  const outcome = await waitingLogins.tryCode(login, code, by)
  if (typeof outcome === 'number') return { reason: 'too_many', waitMs: outcome }
  if (outcome === 'unread' || outcome === 'wrong') return { reason: outcome }
  if (outcome === 'over' || !(await verification.confirmByCode(login))) return undefined
  await verification.recordConfirmedByCode(login, by).catch((error: unknown) => {
    log('error', 'a verification was not recorded', { error: String(error) })
  })
  return 'confirmed'
}

/** Ends the login, whatever became of its address; the request that it was for goes back to the client, or to the login page. */
async function leave(parts: HttpParts, { ctx, next, waiting }: Asked, how: WayOut) {
  const { waitingLogins, clients, resume } = parts
  const login = await waitingLogins.find(waiting)
  if (!('user' in login)) return showOver(parts, ctx, login)
  const { captured } = login
  const mayGoBack = await clients.mayFinish(ctx, captured)
  const isLeft = await waitingLogins.leave(waiting, async () => {
    if (mayGoBack) await resume.left(ctx, next, captured, how)
  })
  if (!isLeft) await showOver(parts, ctx, { status: 'continued', captured })
  else if (!mayGoBack) await showOver(parts, ctx, { status: 'ended', captured })
}

async function showWaiting(
  parts: HttpParts,
  ctx: Context,
  { user, login }: WaitingLogin,
  fault?: CodeFault,
) {
  const lifetimeMs = parts.settings().emailVerificationExpiration
  const waitMs = await parts.cooldown.left({
    kind: 'email_verification',
    typed: user.username,
    requester: parts.requesterOf(ctx.req),
  })
  parts.pages.show(ctx, await blockedPage(parts, { user, login, lifetimeMs, waitMs, fault }))
}

/** What went on once may have come to nothing since, or be about to sign in: this request was sent before its cookie came. */
async function showOver(
  { clients, resume, pages }: HttpParts,
  ctx: Context,
  { status, captured }: FinishedLogin,
) {
  const page = { name: 'verify-email', ...(captured && pageOf(captured)) } as const
  const client = captured && (await clients.restart(carriedBy(captured)))
  const live = status === 'continued' ? await resume.liveSession(ctx) : undefined
  const mode = live && live.accountId === captured?.login.accountId ? 'signed_in' : 'ended'
  pages.show(ctx, { ...page, status: mode === 'ended' ? 400 : 200, locals: { mode, client } })
}
