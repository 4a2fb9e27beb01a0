import type { PageLocals } from '../views/index.ts'
import type { HttpParts } from './parts.ts'
import type { Context, Next } from 'koa'
import type { WayOut } from '../oidc/resume.ts'
import type { FinishedLogin, WaitingLogin, WaitingWindow } from '../flows/waiting-login.ts'
import { carriedBy } from '../ports/carried-query.ts'
import { blockedPage, pageOf } from './verify-email-pages.ts'
import { parseFields, readForm } from './form.ts'

/** The answer to the question which account to go on as. */
interface Answer {
  /** Names the session that may be replaced. */
  replaces?: string | undefined
  keepsSession?: boolean
}

/** What one request is about: the window that asks, and the login that it waits for. */
interface Asked {
  ctx: Context
  next: Next
  window: WaitingWindow
}

/** The window that logged in goes on by itself. */
export function waitingLogin(parts: HttpParts) {
  const { waitingLogins, browserCookie, pages } = parts

  const windowOf = (ctx: Context, pendingLoginId = ''): WaitingWindow => ({
    pendingLoginId,
    browser: browserCookie.read(ctx.req),
  })

  const asked = (ctx: Context) =>
    windowOf(ctx, parseFields(ctx.querystring, (name) => name === 'login')?.get('login'))

  return {
    status: {
      async get(ctx: Context) {
        const status = await waitingLogins.status(asked(ctx))
        ctx.set({ 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' })
        ctx.body = { status }
      },
    },

    window: {
      isUncounted: true,

      /** The page again, as after a reload; it goes on when a button is pressed, or its script sees that it may. */
      async get(ctx: Context) {
        const window = asked(ctx)
        const login = await waitingLogins.find(window)
        if (!('user' in login)) return showOver(parts, ctx, login)
        if (login.status === 'verified' && !login.window.goesOn)
          return showOnlyVerified(parts, ctx, login)
        await showWaiting(parts, ctx, login, false)
      },

      async post(ctx: Context, next: Next) {
        const form = await readForm(ctx)
        if (typeof form === 'string') return pages.showError(ctx, form)
        const action = form.get('action')
        const posted = { ctx, next, window: windowOf(ctx, form.get('login')) }
        if (action === 'cancel') return leave(parts, posted, 'denied')
        if (action === 'other_account') return leave(parts, posted, 'asked_again')
        await goOn(parts, posted, {
          replaces: action === 'continue' ? form.get('session') : undefined,
          keepsSession: action === 'confirm_only',
        })
      },
    },
  }
}

async function goOn(parts: HttpParts, { ctx, next, window }: Asked, answer: Answer) {
  const { waitingLogins, clients, resume, pages } = parts
  const login = await waitingLogins.find(window)
  if (!('user' in login)) return showOver(parts, ctx, login)
  if (login.status === 'waiting') return showWaiting(parts, ctx, login, true)
  if (!login.window.goesOn) return showOnlyVerified(parts, ctx, login)
  const { user, captured } = login
  const show = (locals: PageLocals['verify-email']) =>
    pages.show(ctx, { status: 200, name: 'verify-email', locals, ...pageOf(captured) })
  // The device that waited for it, that is.
  if (await clients.isFinished(captured)) return show({ mode: 'signed_in' })
  if (answer.keepsSession || !(await clients.mayFinish(ctx, captured))) {
    return showOnlyVerified(parts, ctx, login)
  }
  const live = await resume.liveSession(ctx)
  const isForeign = live !== undefined && live.accountId !== user.id
  if (isForeign && live.uid !== answer.replaces) {
    const { pendingLoginId } = window
    const { client } = await clients.identify(carriedBy(captured))
    return show({ mode: 'other_account', pendingLoginId, session: live.uid, client })
  }
  let isFinished = true
  const wentOn = await waitingLogins.inTurn(window, async () => {
    if (isForeign) await resume.endForeignSession(ctx, user.id)
    isFinished = await resume.waiting(ctx, next, captured)
  })
  if (!wentOn) await showOver(parts, ctx, { status: 'continued', captured })
  else if (!isFinished) await showOver(parts, ctx, { status: 'ended', captured })
}

/** Ends the login, whatever became of its address; the request that it was for goes back to the client, or to the login page. */
async function leave(parts: HttpParts, { ctx, next, window }: Asked, how: WayOut) {
  const { waitingLogins, clients, resume } = parts
  const login = await waitingLogins.find(window)
  if (!('user' in login)) return showOver(parts, ctx, login)
  const { captured } = login
  const mayGoBack = await clients.mayFinish(ctx, captured)
  const isLeft = await waitingLogins.leave(window, async () => {
    if (mayGoBack) await resume.left(ctx, next, captured, how)
  })
  if (!isLeft) await showOver(parts, ctx, { status: 'continued', captured })
  else if (!mayGoBack) await showOver(parts, ctx, { status: 'ended', captured })
}

async function showWaiting(
  parts: HttpParts,
  ctx: Context,
  { user, captured, window }: WaitingLogin,
  isNotYet: boolean,
) {
  const lifetimeMs = parts.settings().emailVerificationExpiration
  const waitMs = await parts.cooldown.left({
    kind: 'email_verification',
    typed: user.username,
    requester: parts.requesterOf(ctx.req),
  })
  const blocked = { user, captured, window, lifetimeMs, waitMs, isNotYet }
  parts.pages.show(ctx, await blockedPage(parts, blocked))
}

async function showOnlyVerified({ clients, pages }: HttpParts, ctx: Context, login: WaitingLogin) {
  const client = await clients.restart(carriedBy(login.captured))
  const page = { status: 200, name: 'verify-email', ...pageOf(login.captured) } as const
  pages.show(ctx, { ...page, locals: { mode: 'verified', client } })
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
  if (live && live.accountId === captured?.login.accountId) {
    return pages.show(ctx, { ...page, status: 200, locals: { mode: 'signed_in', client } })
  }
  pages.show(ctx, { ...page, status: 400, locals: { mode: status, client } })
}
