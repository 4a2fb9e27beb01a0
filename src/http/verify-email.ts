/** The pages of a verification link: what the link opens, and the form that asks for another one. */
import type { Context } from 'koa'
import type { Clock } from '../clock.ts'
import { parametersOf } from '../contract/parameters.ts'
import type { VerificationLink } from '../crypto/verification-link.ts'
import type { OpenedLink, LinkRefusal } from '../flows/email-verification.ts'
import { UNKNOWN } from '../flows/link-state.ts'
import type { SeenLogins } from '../oidc/seen-logins.ts'
import type { PendingLogin } from '../store/index.ts'
import { loginSecond } from '../store/cutoffs.ts'
import type { PageLocals, Sent } from '../views/index.ts'
import { isUnattended } from './browser.ts'
import { idIn, linkInForm, linkInQuery, type SentForm } from './input.ts'
import type { MailForms } from './mail-forms.ts'
import type { PageParts } from './pages.ts'
import type { Route, Visit } from './dispatcher.ts'
import { finishWaiting, requestOf, type WaitingLoginParts } from './waiting-login.ts'

export interface VerifyEmailParts extends WaitingLoginParts {
  mailForms: MailForms
  sessions: Pick<SeenLogins, 'cutoffsSeenAtLogin'>
  clock: Clock
}

interface Opening extends Visit {
  opened: OpenedLink
}

// What a verification link opens (4.6). With `email_link_confirmation` at `other_browser`, it verifies only in a browser where a login of
// its account waits. There, the same person has the mailbox and the password.
export function verifyEmail(parts: VerifyEmailParts): Route {
  const { verification, settings } = parts

  return {
    async get(visit) {
      const { ctx, requester, browser } = visit
      const link = linkInQuery(ctx.querystring, verification.isGenuine)
      if (!link) return showRefused(parts, ctx, UNKNOWN)
      const opened = await verification.open(link, requester, browser)
      if ('fault' in opened) return showRefused(parts, ctx, opened, link)
      const opening = { ...visit, opened }
      // If a person sees this page after all, its button opens the link.
      if (isUnattended(ctx)) return show(parts, opening, { mode: 'confirm', link })
      if (settings().emailLinkConfirmation === 'off') return goByLink(parts, opening)
      if (!opened.here) return showElsewhere(parts, opening)
      return goOnHere(parts, opening, opened.here)
    },
  }
}

/** Verifies, and finishes the login that waits in this browser. */
async function goOnHere(parts: VerifyEmailParts, opening: Opening, login: PendingLogin) {
  // Throws if the provider fails, before the link is used. `finishWaiting` asks again, and uses the answer.
  await parts.clients.mayFinish(opening.ctx, login.captured)
  if (!(await verifyOrRefuse(parts, opening, login.id))) return
  if (login.continuedAt) return show(parts, opening, { mode: 'verified' })
  await finishWaiting(parts, opening, login)
}

/** As 4.6 says: the link signs in any browser, if its request can still be finished. It never replaces the session of another account. */
async function goByLink(parts: VerifyEmailParts, opening: Opening) {
  const { waitingLogins, resume, clients, sessions, clock } = parts
  const { ctx, next, opened } = opening
  const { login, here, token } = opened
  const { userId: accountId } = token
  const ts = loginSecond(clock.now())
  const signedIn = await resume.signedInAccount(ctx)
  if (signedIn !== undefined && signedIn !== accountId)
    return show(parts, opening, { mode: 'other_account' })
  const isOwnBrowser = login && here?.browserHash === login.browserHash
  if (isOwnBrowser) return goOnHere(parts, opening, login)

  const byEmail = async () => {
    const accountFlowsSeen = await sessions.cutoffsSeenAtLogin(accountId, ts, token.passwordDigest)
    return { accountId, ts, accountFlowsSeen, amr: ['email'] }
  }
  if (token.pendingLoginId === undefined) {
    const { parameters } = await clients.identify(token.parameters)
    if (!(await verifyOrRefuse(parts, opening))) return
    if (parameters.clientId === undefined) return show(parts, opening, { mode: 'verified' })
    return resume.authorizeByEmail(ctx, next, await byEmail(), parameters)
  }
  const mayFinish = login !== undefined && (await clients.mayFinish(ctx, login.captured))
  if (!(await verifyOrRefuse(parts, opening))) return
  const isFinished =
    mayFinish &&
    !(await waitingLogins.wasCancelled(login.id)) &&
    (await resume.finishByEmail(ctx, next, login.captured, await byEmail()))
  if (!isFinished) await show(parts, opening, { mode: 'verified' })
}

/** `false`: the link did nothing, and a page says why. */
async function verifyOrRefuse(parts: VerifyEmailParts, opening: Opening, goesOn?: string) {
  const { ctx, requester, opened } = opening
  const outcome = await parts.verification.confirm(opened, requester, goesOn)
  if (outcome === 'verified') return true
  await showRefused(parts, ctx, outcome)
  return false
}

async function showRefused(
  { pages, clients }: PageParts,
  ctx: Context,
  { fault, parameters, locale: uiLocales }: LinkRefusal,
  link?: VerificationLink,
) {
  const client = await clients.restart(parameters)
  const renew = fault === 'expired' ? link : undefined
  const locals =
    fault === 'verified'
      ? ({ mode: fault, client } as const)
      : ({ mode: 'expired', reason: fault, parameters, client, renew } as const)
  pages.show(ctx, { name: 'verify-email', locals, uiLocales })
}

/** Verifies nothing. It shows the code for the page that waits. */
async function showElsewhere(parts: VerifyEmailParts, opening: Opening) {
  const { ctx, opened } = opening
  const { username, login } = opened
  const shown = await parts.verification.codeOf(opened)
  // No code is shown if the login could not reach its client.
  const mayFinish = login && (await parts.clients.mayFinish(ctx, login.captured))
  const code = shown && mayFinish && { ...shown, at: login.createdAt }
  const hasNoLogin = opened.token.pendingLoginId === undefined
  await show(parts, opening, { mode: 'elsewhere', username, hasNoLogin, ...code })
}

/** Shows a page in the language of the mail. The client is that of the waiting login: parameters can be too long for the link. */
async function show(
  { pages, clients }: VerifyEmailParts,
  { ctx, opened: { login, token } }: Opening,
  locals: PageLocals['verify-email'],
) {
  const parameters = login ? parametersOf(login.captured) : token.parameters
  const client = await clients.restart(parameters)
  pages.show(ctx, {
    name: 'verify-email',
    locals: { ...locals, client },
    formMayLeadTo: parameters.redirectUri,
    uiLocales: token.locale ?? (login && requestOf(login.captured).uiLocales),
  })
}

/** The form that asks for another link (4.7). */
export function resendVerification(parts: VerifyEmailParts): Route {
  const { verification, waitingLogins, clients, pages, cooldown, mailForms } = parts

  /** The page of a waiting login stays the page of that login, whatever name the user types. */
  async function show({ ctx }: Visit, form: SentForm, answer: Sent | { mode: 'invalid' }) {
    const { fields, parameters, uiLocales, formId } = form
    // Without the cookie of that login, its form has no effect.
    const waiting = idIn(fields, 'login')
    const { scope: _scope, state: _state, ...named } = parameters
    const { client } = await clients.identify(named)
    const shown = answer.mode === 'invalid' ? { ...answer, parameters } : answer
    pages.show(ctx, {
      name: 'verify-email',
      locals: { waiting, client, ...shown },
      formMayLeadTo: waiting && client && parameters.redirectUri,
      uiLocales,
      formId,
    })
  }

  return {
    tooMany: 'email_verification_requested',
    post: mailForms.form({
      kind: 'email_verification',
      show,

      /** The old link identifies the account, so the user types no name. */
      async renew(visit, form) {
        const { fields, formId, requester } = form
        const outcome = await verification.renew(linkInForm(fields), requester, formId)
        const uiLocales = form.uiLocales ?? outcome.locale
        if ('fault' in outcome)
          return showRefused(parts, visit.ctx, { ...outcome, locale: uiLocales })
        const token = fields.get('token') ?? ''
        const waitMs = await cooldown.count('email_verification', token, requester)
        await show(visit, { ...form, uiLocales }, { mode: 'sent', isRenewed: true, waitMs })
      },

      /** The login that waits on this page, if it has the typed name. The mail then has the code of this login. */
      async loginOf({ browser }, { fields }) {
        const pendingLoginId = fields.get('login')
        if (pendingLoginId === undefined) return undefined
        const found = await waitingLogins.find(pendingLoginId, browser)
        if (!('user' in found) || found.user.username !== fields.get('username')) return undefined
        return { accountId: found.user.id, pendingLoginId }
      },
    }),
  }
}
