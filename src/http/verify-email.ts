import type { Context, Next } from 'koa'
import type { AfterConfirming, OpenedLink } from '../flows/email-verification.ts'
import type { LoginToMatch } from '../flows/linked-login.ts'
import type { VerificationLink } from '../flows/link.ts'
import { loginSecond } from '../ports/login-end.ts'
import { isPressed, isUnattended } from './cross-site.ts'
import { linkInForm, linkInQuery, readForm, uiLocalesIn } from './form.ts'
import type { HttpParts } from './parts.ts'
import { destinationOf } from './link-destination.ts'
import { loginToMatch, verifyEmailPages, type VerifyEmailPages } from './verify-email-pages.ts'

/** What one request is about. */
interface Opening {
  ctx: Context
  next: Next
  /** The second in which the request came. */
  arrivedAt: number
  link: VerificationLink
  opened: OpenedLink
  show: VerifyEmailPages
}

/** What a verification link opens (4.6), and the forms there. */
export function verifyEmail(parts: HttpParts) {
  const { verification, pages, settings, clock } = parts

  /** `undefined`: it does nothing, and the page says so. */
  async function open(
    asked: Omit<Opening, 'link' | 'opened'>,
    link: VerificationLink | undefined,
  ): Promise<Opening | undefined> {
    const { ctx, show } = asked
    if (!link) return show.expired(ctx, UNKNOWN).then(() => undefined)
    const browser = parts.browserCookie.read(ctx.req)
    const opened = await verification.open(link, { ...parts.requesterOf(ctx.req), browser })
    if (!('refusal' in opened)) return { ...asked, link, opened }
    if (opened.refusal === 'verified') await show.verified(ctx, opened)
    else await show.expired(ctx, opened, link)
    return undefined
  }

  const mustBeAsked = ({ opened: { isFirstBrowser } }: Opening) => {
    const { emailLinkConfirmation: mode } = settings()
    return mode === 'always' || (mode === 'other_browser' && !isFirstBrowser)
  }

  return {
    async get(ctx: Context, next: Next) {
      const show = verifyEmailPages(parts)
      const asked = { ctx, next, arrivedAt: loginSecond(clock.now()), show }
      const opening = await open(asked, linkInQuery(ctx.querystring, verification.isGenuine))
      if (!opening) return
      const isByNobody = isUnattended(ctx)
      if (!isByNobody && !mustBeAsked(opening)) return finish(parts, opening)
      await show.confirm(ctx, opening.link, opening.opened)
      // A browser then throws away what it fetched ahead. Where it is shown all the same, its button goes on.
      if (isByNobody) ctx.status = 403
    },

    /** The answers to the questions about another browser and another account. */
    async post(ctx: Context, next: Next) {
      const arrivedAt = loginSecond(clock.now())
      const form = await readForm(ctx)
      if (typeof form === 'string') return pages.showError(ctx, form)
      const show = verifyEmailPages(parts, uiLocalesIn(form))
      const opening = await open({ ctx, next, arrivedAt, show }, linkInForm(form))
      if (!opening) return
      const action = form.get('action')
      const isAnswer = action === 'continue' || action === 'confirm_only'
      if (mustBeAsked(opening) && !isPressed(ctx, form)) {
        return show.confirm(ctx, opening.link, opening.opened, 'unpressed')
      }
      if (action === 'disown') return disown(parts, opening)
      if (action === 'confirm_only') return confirmOnly(parts, opening)
      if (!isAnswer && action !== 'confirm') return pages.showError(ctx, 'bad_request')
      const toMatch = await loginToMatch(parts, ctx, opening.opened)
      const number = form.get('number')
      if (!toMatch || (toMatch.isOver && number === undefined)) {
        return finish(parts, opening, isAnswer ? form.get('session') : undefined)
      }
      return matchWindow(parts, opening, toMatch, number ?? '')
    },
  }
}

const UNKNOWN = { reason: 'unknown', carried: {} } as const

/** Confirms, and finishes the login; asks first where another account is signed in, unless it is the one that may be replaced. */
async function finish(parts: HttpParts, opening: Opening, replaces?: string) {
  const { resume } = parts
  const { ctx, next, link, opened, show } = opening
  const destination = await destinationOf(parts, opening)
  if (!destination) return confirmOnly(parts, opening)
  const live = await resume.liveSession(ctx)
  const isForeign = live !== undefined && live.accountId !== opened.accountId
  if (isForeign && live.uid !== replaces) {
    return show.otherAccount(ctx, link, opened, live.uid)
  }
  const goOn = async () => {
    if (isForeign) await resume.endForeignSession(ctx, opened.accountId)
    const isFinished = await destination.go(ctx, next)
    if (!isFinished) await show.confirmed(ctx, opened, false)
  }
  await confirm(parts, opening, { takesTurn: destination.takesTurn, matched: undefined, goOn })
}

/** Confirms, and the window in another browser goes on, if the number that was typed is the one that it shows. */
async function matchWindow(parts: HttpParts, opening: Opening, login: LoginToMatch, typed: string) {
  const { ctx, link, opened, show } = opening
  const by = parts.requesterOf(ctx.req)
  const outcome = login.isOver
    ? 'ended'
    : await parts.verification.tryNumber(opened.token, by, login, typed)
  if (outcome === 'matched') return confirmOnly(parts, opening, login.id)
  return show.confirm(ctx, link, opened, outcome)
}

async function disown(parts: HttpParts, { ctx, opened, show }: Opening) {
  await parts.verification.disown(opened, parts.requesterOf(ctx.req))
  show.disowned(ctx, opened)
}

/** @param matched - the login whose number was typed. */
async function confirmOnly(parts: HttpParts, opening: Opening, matched?: string) {
  const { ctx, opened, show } = opening
  const { captured, isAwaited, toMatch } = opened
  const mayGoOn = isAwaited && toMatch?.id === matched
  const goesOn = mayGoOn && captured !== undefined && (await parts.clients.mayFinish(ctx, captured))
  const goOn = () => show.confirmed(ctx, opened, goesOn)
  await confirm(parts, opening, { takesTurn: false, matched, goOn })
}

async function confirm(parts: HttpParts, { ctx, opened, show }: Opening, then: AfterConfirming) {
  const { verification, resume, log } = parts
  const requester = parts.requesterOf(ctx.req)
  // The link is spent: a failure to record it is no reason to leave the login unfinished.
  const record = () =>
    verification.recordConfirmed(opened, requester).catch((error: unknown) => {
      log('error', 'a verification was not recorded', { error: String(error) })
    })
  const outcome = await verification.confirm(opened, requester, {
    ...then,
    goOn: () => record().then(then.goOn),
  })
  if (outcome === 'confirmed') return
  if (outcome !== 'continued') return show.expired(ctx, outcome)
  await record()
  const isSignedIn = (await resume.liveSession(ctx))?.accountId === opened.accountId
  if (isSignedIn) await show.signedIn(ctx, opened)
  else await show.confirmed(ctx, opened, false)
}
