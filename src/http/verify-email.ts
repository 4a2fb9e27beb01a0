import type { Context, Next } from 'koa'
import type { OpenedLink } from '../flows/confirm-address.ts'
import { unknownLink, type LinkRefusal } from '../flows/link-refusal.ts'
import { loginSecond } from '../store/login-end.ts'
import type { PendingLogin } from '../store/index.ts'
import { isUnattended } from './browser.ts'
import { linkInQuery } from './form.ts'
import type { HttpParts } from './parts.ts'
import { finish, requestOf, type PageRequest } from './waiting-login.ts'
import { newId } from '../crypto/token.ts'
import { carriedBy } from '../contract/carried-query.ts'
import type { VerificationLink } from '../contract/links.ts'
import type { PageLocals } from '../views/index.ts'

interface Opening {
  ctx: Context
  next: Next
  opened: OpenedLink
}

/**
 * What a verification link opens (4.6). With `email_link_confirmation` at `other_browser`, it verifies only in a browser where a login of
 * its account waits. There, the same person has the mailbox and the password.
 */
export function verifyEmail(parts: HttpParts) {
  const { verification, settings } = parts
  const show = verifyEmailPages(parts)

  return {
    async get(ctx: Context, next: Next) {
      const link = linkInQuery(ctx.querystring, verification.isGenuine)
      if (!link) return show.refused(ctx, unknownLink({}))
      const browser = parts.browserCookie.read(ctx.req)
      const opened = await verification.open(link, { ...parts.requesterOf(ctx.req), browser })
      if ('refusal' in opened) return show.refused(ctx, opened, link)
      if (isUnattended(ctx)) return show.confirm(ctx, link, opened)
      const opening = { ctx, next, opened }
      if (settings().emailLinkConfirmation === 'off') return goByLink(parts, opening)
      if (!opened.here) return show.elsewhere(ctx, opened)
      return goOnHere(parts, opening, opened.here)
    },
  }
}

/** Verifies, and finishes the login that waits in this browser. */
async function goOnHere(parts: HttpParts, opening: Opening, login: PendingLogin) {
  const { ctx, next, opened } = opening
  // First, so that the link stays usable if the provider fails.
  await parts.clients.mayFinish(ctx, login.captured)
  if (!(await confirmed(parts, opening, login.id))) return
  if (login.continuedAt) return verifyEmailPages(parts).confirmed(ctx, opened)
  const waiting = { pendingLoginId: login.id, browser: parts.browserCookie.read(ctx.req) }
  await finish(parts, { ctx, next, waiting }, login.captured)
}

/** As 4.6 says: the link signs in any browser, if its request can still be finished. It never replaces the session of another account. */
async function goByLink(parts: HttpParts, opening: Opening) {
  const { resume, clients, cutoffsSeenAtLogin, clock } = parts
  const { ctx, next, opened } = opening
  const { login, here, token } = opened
  const { userId: accountId } = token
  const show = verifyEmailPages(parts)
  const ts = loginSecond(clock.now())
  const signedIn = await resume.signedInAccount(ctx)
  if (signedIn !== undefined && signedIn !== accountId) return show.otherAccount(ctx, opened)
  const isOwnBrowser = login && here?.browserHash === login.browserHash
  if (isOwnBrowser) return goOnHere(parts, opening, login)

  const byEmail = async () => {
    const accountFlowsSeen = await cutoffsSeenAtLogin(accountId, ts, token.passwordDigest)
    return { accountId, ts, accountFlowsSeen, amr: ['email'] }
  }
  if (token.pendingLoginId === undefined) {
    const { carried } = await clients.identify(token.carried)
    if (!(await confirmed(parts, opening))) return
    if (carried.clientId === undefined) return show.confirmed(ctx, opened)
    return resume.authorizeByEmail(ctx, next, await byEmail(), carried)
  }
  const mayFinish = login !== undefined && (await clients.mayFinish(ctx, login.captured))
  if (!(await confirmed(parts, opening))) return
  const isFinished =
    mayFinish &&
    !(await parts.waitingLogins.wasCancelled(login.id)) &&
    (await resume.finishByEmail(ctx, next, login.captured, await byEmail()))
  if (!isFinished) await show.confirmed(ctx, opened)
}

/** `false`: the link did nothing, and a page says why. */
async function confirmed(parts: HttpParts, { ctx, opened }: Opening, goesOn?: string) {
  const requester = parts.requesterOf(ctx.req)
  const outcome = await parts.verification.confirm(opened, requester, goesOn)
  if (outcome === 'confirmed') return true
  await verifyEmailPages(parts).refused(ctx, outcome)
  return false
}

/** The pages of a verification link, in the language of its mail. */
export function verifyEmailPages({ pages, clients, verification }: HttpParts) {
  const name = 'verify-email'

  // From the login that waits, because parameters can be too long for the link.
  async function show(
    ctx: Context,
    { login, token: { carried, locale } }: OpenedLink,
    locals: PageLocals['verify-email'],
  ) {
    const client = await clients.restart(login ? carriedBy(login.captured) : carried)
    const page: PageRequest = login
      ? requestOf(login.captured)
      : { formMayLeadTo: carried.redirectUri }
    const uiLocales = locale ?? page.uiLocales
    pages.show(ctx, { name, locals: { ...locals, client }, ...page, uiLocales })
  }

  return {
    /** @param link - that was opened, if it is genuine. */
    async refused(
      ctx: Context,
      { refusal, reason, carried, locale: uiLocales }: LinkRefusal,
      link?: VerificationLink,
    ) {
      const client = await clients.restart(carried)
      if (refusal === 'verified')
        return pages.show(ctx, { name, locals: { mode: refusal, client }, uiLocales })
      const renew = reason === 'expired' ? link : undefined
      const locals = { mode: 'expired', reason, carried, client, renew } as const
      // The page of an unknown link is always the same, so it has no id.
      const formId = reason === 'unknown' ? undefined : newId()
      pages.show(ctx, { name, locals, uiLocales, formId })
    },

    confirmed: (ctx: Context, opened: OpenedLink) => show(ctx, opened, { mode: 'verified' }),

    /** For a browser that fetches the link ahead. If a person sees this page after all, its button opens the link. */
    confirm: (ctx: Context, link: VerificationLink, opened: OpenedLink) =>
      show(ctx, opened, { mode: 'confirm', link }),

    /** Nothing is verified. The code is for the page that waits. */
    async elsewhere(ctx: Context, opened: OpenedLink) {
      const { username, login } = opened
      const shown = await verification.codeOf(opened)
      // No code is shown if the login could not reach its client.
      const mayFinish = login && (await clients.mayFinish(ctx, login.captured))
      const code = shown && mayFinish && { ...shown, at: login.createdAt }
      await show(ctx, opened, { mode: 'elsewhere', username, ...code })
    },

    otherAccount: (ctx: Context, opened: OpenedLink) =>
      show(ctx, opened, { mode: 'other_account' }),
  }
}
