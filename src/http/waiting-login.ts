import type { Context, Next } from 'koa'
import type {
  FinishedLogin,
  WaitingLogin,
  WaitingLogins,
  WaitingWindow,
} from '../flows/waiting-login.ts'
import { carriedBy } from '../flows/link.ts'
import type { Clients } from '../oidc/clients.ts'
import type { Resume } from '../oidc/resume.ts'
import type { Requester } from '../ports/index.ts'
import type { Settings } from '../settings/table.ts'
import { blockedPage, pageOf } from './verify-email-pages.ts'
import type { BrowserCookie } from './browser-cookie.ts'
import { parseFields, readForm } from './form.ts'
import type { Pages } from './pages.ts'
import type { ResendCooldown } from './limits.ts'

export interface WaitingLoginParts {
  waitingLogins: WaitingLogins
  clients: Pick<Clients, 'mayFinish' | 'isFinished' | 'shown' | 'restart'>
  resume: Resume
  browserCookie: Pick<BrowserCookie, 'read'>
  pages: Pages
  cooldown: ResendCooldown
  settings(): Settings
  requesterOf(ctx: Context): Requester
}

/** The answer to the question which account to go on as. */
interface Answer {
  /** Names the session that may be replaced. */
  replaces?: string | undefined
  keepsSession?: boolean
}

/** The window that logged in goes on by itself. */
export function waitingLogin(parts: WaitingLoginParts) {
  const { waitingLogins, clients, resume, pages, settings } = parts

  const windowOf = (ctx: Context, pendingLoginId = ''): WaitingWindow => ({
    pendingLoginId,
    browser: parts.browserCookie.read(ctx.req),
  })

  const asked = (ctx: Context) =>
    windowOf(ctx, parseFields(ctx.querystring, (name) => name === 'login')?.get('login'))

  async function showWaiting(
    ctx: Context,
    { user, captured }: WaitingLogin,
    { pendingLoginId }: WaitingWindow,
    isNotYet: boolean,
  ) {
    const lifetimeMs = settings().emailVerificationExpiration
    const waitMs = await parts.cooldown.left({
      kind: 'email_verification',
      typed: user.username,
      requester: parts.requesterOf(ctx),
    })
    const blocked = { user, captured, pendingLoginId, lifetimeMs, waitMs, isNotYet }
    pages.show(ctx, await blockedPage(clients, blocked))
  }

  /** What went on once may have come to nothing since, or be about to sign in: this request was sent before its cookie came. */
  async function showOver(ctx: Context, { status, captured }: FinishedLogin) {
    const page = { name: 'verify-email', ...(captured && pageOf(captured)) } as const
    const client = captured && (await clients.restart(carriedBy(captured)))
    const live = status === 'continued' ? await resume.liveSession(ctx) : undefined
    if (live && live.accountId === captured?.login.accountId) {
      return pages.show(ctx, { ...page, status: 200, locals: { mode: 'signed_in', client } })
    }
    pages.show(ctx, { ...page, status: 400, locals: { mode: status, client } })
  }

  async function showVerified(ctx: Context, { captured }: WaitingLogin) {
    const locals = { mode: 'verified', client: await clients.restart(carriedBy(captured)) } as const
    pages.show(ctx, { status: 200, name: 'verify-email', locals, ...pageOf(captured) })
  }

  /** The device that waited for it, that is. */
  function showSignedIn(ctx: Context, { captured }: WaitingLogin) {
    const locals = { mode: 'signed_in' } as const
    pages.show(ctx, { status: 200, name: 'verify-email', locals, ...pageOf(captured) })
  }

  async function goOn(ctx: Context, next: Next, window: WaitingWindow, answer: Answer = {}) {
    const login = await waitingLogins.find(window)
    if (!('user' in login)) return showOver(ctx, login)
    if (login.status === 'waiting') return showWaiting(ctx, login, window, true)
    const { user, captured } = login
    if (await clients.isFinished(captured)) return showSignedIn(ctx, login)
    if (answer.keepsSession || !(await clients.mayFinish(ctx, captured)))
      return showVerified(ctx, login)
    const live = await resume.liveSession(ctx)
    const isForeign = live !== undefined && live.accountId !== user.id
    if (isForeign && live.uid !== answer.replaces) {
      return pages.show(ctx, {
        status: 200,
        name: 'verify-email',
        locals: {
          mode: 'other_account',
          pendingLoginId: window.pendingLoginId,
          session: live.uid,
        },
        ...pageOf(captured),
      })
    }
    const wentOn = await waitingLogins.inTurn(window, async () => {
      if (isForeign) await resume.endForeignSession(ctx, user.id)
      await resume.waiting(ctx, next, captured)
    })
    if (!wentOn) await showOver(ctx, { status: 'continued', captured })
  }

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
        if (!('user' in login)) return showOver(ctx, login)
        await showWaiting(ctx, login, window, false)
      },

      async post(ctx: Context, next: Next) {
        const form = await readForm(ctx)
        if (typeof form === 'string') return pages.showError(ctx, form)
        const action = form.get('action')
        await goOn(ctx, next, windowOf(ctx, form.get('login')), {
          replaces: action === 'continue' ? form.get('session') : undefined,
          keepsSession: action === 'confirm_only',
        })
      },
    },
  }
}
