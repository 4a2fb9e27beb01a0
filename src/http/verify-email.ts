import type { Context, Next } from 'koa'
import type { Clock } from '../clock.ts'
import type { EmailVerification, OpenedLink } from '../flows/email-verification.ts'
import type { VerificationLink } from '../flows/link.ts'
import { loginSecond } from '../ports/login-second.ts'
import type { Clients } from '../oidc/clients.ts'
import type { Resume } from '../oidc/resume.ts'
import type { Log, Requester } from '../ports/index.ts'
import type { Settings } from '../settings/table.ts'
import type { BrowserCookie } from './browser-cookie.ts'
import { isPressed, isUnattended } from './cross-site.ts'
import { readForm, linkInForm, linkInQuery } from './form.ts'
import type { Pages } from './pages.ts'
import { verifyEmailPages } from './verify-email-pages.ts'

export interface VerifyEmailParts {
  verification: Pick<EmailVerification, 'isGenuine' | 'open' | 'confirm' | 'recordConfirmed'>
  clients: Pick<Clients, 'genuine' | 'mayFinish' | 'restart' | 'shown'>
  resume: Resume
  browserCookie: Pick<BrowserCookie, 'read'>
  pages: Pages
  settings(): Settings
  requesterOf(ctx: Context): Requester
  /** Answers the second to date the login with. */
  noteLogin(accountId: string, second: number, passwordDigest?: string): Promise<number>
  clock: Clock
  log: Log
}

/** Where a confirmed link leads; decided before anything is consumed. */
interface Destination {
  go(ctx: Context, next: Next): Promise<void>
  /** The login that waits in a window of this browser goes on here instead. */
  takesTurn: boolean
}

/** 4.6. */
export function verifyEmail(parts: VerifyEmailParts) {
  const { verification, clients, resume, pages, settings, requesterOf, clock, log } = parts
  const { now } = clock
  const show = verifyEmailPages(pages, clients)

  async function openOrShowWhyNot(ctx: Context, link: VerificationLink) {
    const browser = parts.browserCookie.read(ctx.req)
    const opened = await verification.open(link, { ...requesterOf(ctx), browser })
    if (!('refusal' in opened)) return opened
    if (opened.refusal === 'verified') await show.verified(ctx, opened.carried)
    else await show.expired(ctx, opened, link)
    return undefined
  }

  /** `undefined`: the link verifies, and the login is finished elsewhere or not at all. */
  async function destinationOf(
    asked: Context,
    link: OpenedLink,
    arrivedAt: number,
  ): Promise<Destination | undefined> {
    const { accountId, captured, loginEnded, token, isFirstBrowser } = link
    const isElsewhere = settings().emailLinkConfirmation !== 'off' && !isFirstBrowser
    if (loginEnded || isElsewhere) return undefined
    const byEmail = async () => {
      const second = await parts.noteLogin(accountId, arrivedAt, token.passwordDigest)
      return { accountId, second }
    }
    if (captured === undefined) {
      const carried = await clients.genuine(token.carried)
      if (carried.clientId === undefined) return undefined
      const go = async (ctx: Context, next: Next) =>
        resume.carried(ctx, next, await byEmail(), carried)
      return { go, takesTurn: false }
    }
    if (!(await clients.mayFinish(asked, captured))) return undefined
    const go = async (ctx: Context, next: Next) =>
      resume.captured(ctx, next, captured, isFirstBrowser ? undefined : await byEmail())
    return { go, takesTurn: true }
  }

  async function confirm(
    ctx: Context,
    link: OpenedLink,
    takesTurn: boolean,
    goOn: () => Promise<void>,
  ) {
    const requester = requesterOf(ctx)
    // The link is spent: a failure to record it is no reason to leave the login unfinished.
    const record = () =>
      verification.recordConfirmed(link, requester).catch((error: unknown) => {
        log('error', 'a verification was not recorded', { error: String(error) })
      })
    const outcome = await verification.confirm(link, requester, {
      takesTurn,
      goOn: () => record().then(goOn),
    })
    if (outcome === 'confirmed') return
    if (outcome === 'expired') {
      return show.expired(ctx, { reason: 'used', carried: link.token.carried })
    }
    await record()
    const isSignedIn = (await resume.liveSession(ctx))?.accountId === link.accountId
    if (isSignedIn) await show.signedIn(ctx, link)
    else await show.confirmed(ctx, link, false)
  }

  async function confirmOnly(ctx: Context, link: OpenedLink) {
    const { captured, isAwaited } = link
    const goesOn = isAwaited && captured !== undefined && (await clients.mayFinish(ctx, captured))
    await confirm(ctx, link, false, () => show.confirmed(ctx, link, goesOn))
  }

  /** Confirms, and finishes the login; asks first where another account is signed in. */
  async function finish(
    ctx: Context,
    next: Next,
    link: VerificationLink,
    opened: OpenedLink,
    arrivedAt: number,
    replaces?: string,
  ) {
    const destination = await destinationOf(ctx, opened, arrivedAt)
    if (!destination) return confirmOnly(ctx, opened)
    const live = await resume.liveSession(ctx)
    const isForeign = live !== undefined && live.accountId !== opened.accountId
    if (isForeign && live.uid !== replaces) return show.otherAccount(ctx, link, opened, live.uid)
    await confirm(ctx, opened, destination.takesTurn, async () => {
      if (isForeign) await resume.endForeignSession(ctx, opened.accountId)
      await destination.go(ctx, next)
    })
  }

  const mustBeAsked = ({ isFirstBrowser }: OpenedLink) => {
    const { emailLinkConfirmation: mode } = settings()
    return mode === 'always' || (mode === 'other_browser' && !isFirstBrowser)
  }

  return {
    async get(ctx: Context, next: Next) {
      const arrivedAt = loginSecond(now())
      const link = linkInQuery(ctx.querystring, verification.isGenuine)
      if (!link) return show.expired(ctx, UNKNOWN)
      const opened = await openOrShowWhyNot(ctx, link)
      if (!opened) return
      const isByNobody = isUnattended(ctx)
      if (!isByNobody && !mustBeAsked(opened)) return finish(ctx, next, link, opened, arrivedAt)
      await show.confirm(ctx, link, opened)
      // A browser then throws away what it fetched ahead. Where it is shown all the same, its button goes on.
      if (isByNobody) ctx.status = 403
    },

    /** The answers to the questions about another browser and another account. */
    async post(ctx: Context, next: Next) {
      const arrivedAt = loginSecond(now())
      const form = await readForm(ctx)
      if (typeof form === 'string') return pages.showError(ctx, form)
      const link = linkInForm(form)
      if (!link) return show.expired(ctx, UNKNOWN)
      const action = form.get('action')
      const isAnswer = action === 'continue' || action === 'confirm_only'
      const opened = await openOrShowWhyNot(ctx, link)
      if (!opened) return
      if (mustBeAsked(opened) && !isPressed(ctx, form)) {
        return show.confirm(ctx, link, opened, true)
      }
      if (action === 'confirm_only') return confirmOnly(ctx, opened)
      if (!isAnswer && action !== 'confirm') return pages.showError(ctx, 'bad_request')
      return finish(ctx, next, link, opened, arrivedAt, isAnswer ? form.get('session') : undefined)
    },
  }
}

const UNKNOWN = { reason: 'unknown', carried: {} } as const
