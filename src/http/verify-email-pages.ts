import type { Context } from 'koa'
import { newId } from '../crypto/token.ts'
import type { OpenedLink } from '../flows/email-verification.ts'
import type { LinkRefusal } from '../flows/link-refusal.ts'
import type { LoginToMatch } from '../flows/linked-login.ts'
import type { LinkContext, VerificationLink } from '../flows/link.ts'
import type { OwnWindow } from '../flows/whose-window.ts'
import { carriedBy } from '../ports/carried-query.ts'
import type { CapturedRequest, CarriedParameters, User } from '../ports/index.ts'
import type { LinkFields, WaitingElsewhere, WaitingPage } from '../views/index.ts'
import type { Page } from './pages.ts'
import type { HttpParts } from './parts.ts'

/** @param asked - `ui_locales` of the form that they answer. `undefined`: they are in the language of the mail. */
export function verifyEmailPages(parts: HttpParts, asked?: string) {
  const { pages, clients } = parts
  const name = 'verify-email'

  // A link without parameters may finish a request that has them: they were too long for an address.
  function requestOf({ captured, token }: OpenedLink): RequestOfPage {
    const uiLocales = asked ?? token.locale
    if (!captured) return { formMayLeadTo: token.carried.redirectUri, uiLocales }
    const page = pageOf(captured)
    return { ...page, uiLocales: uiLocales ?? page.uiLocales }
  }

  async function showVerified(
    ctx: Context,
    carried: CarriedParameters,
    goesOnElsewhere: boolean,
    request: RequestOfPage,
  ) {
    const client = await clients.restart(carried)
    const locals = { mode: 'verified', goesOnElsewhere, client } as const
    pages.show(ctx, { status: 200, name, locals, ...request })
  }

  return {
    /** `link`: the one that was opened, if it is genuine. */
    async expired(
      ctx: Context,
      { reason, carried, locale }: Omit<LinkRefusal, 'refusal'>,
      link?: VerificationLink,
    ) {
      const client = await clients.restart(carried)
      const renew = link && reason === 'expired' ? fieldsOf(link) : undefined
      const locals = { mode: 'expired', reason, carried, client, renew } as const
      // Of all links that nobody was given, the page is the same.
      const formId = reason === 'unknown' ? undefined : newId()
      pages.show(ctx, { status: 400, name, locals, uiLocales: asked ?? locale, formId })
    },

    verified: (ctx: Context, { carried, locale }: LinkContext) =>
      showVerified(ctx, carried, false, { uiLocales: asked ?? locale }),

    /** `goesOnElsewhere`: the window that logged in finishes the login. */
    confirmed: (ctx: Context, opened: OpenedLink, goesOnElsewhere: boolean) =>
      showVerified(ctx, opened.token.carried, goesOnElsewhere, requestOf(opened)),

    /** The login went on in the waiting window of this browser. */
    async signedIn(ctx: Context, opened: OpenedLink) {
      const locals = {
        mode: 'signed_in',
        client: await clients.restart(opened.token.carried),
      } as const
      pages.show(ctx, { status: 200, name, locals, ...requestOf(opened) })
    },

    /** The question whether this browser may go on, and by which number. */
    async confirm(ctx: Context, link: VerificationLink, opened: OpenedLink, fault?: ConfirmFault) {
      const question = await questionOf(parts, ctx, link, opened, fault)
      const locals = { mode: 'confirm', link: fieldsOf(link), ...question } as const
      pages.show(ctx, { status: fault ? 400 : 200, name, locals, ...requestOf(opened) })
    },

    /** Nothing was confirmed, and the login that waited is over. */
    disowned: (ctx: Context, opened: OpenedLink) =>
      pages.show(ctx, { status: 200, name, locals: { mode: 'disowned' }, ...requestOf(opened) }),

    /** The question which account to go on as; `session` names the one that it is about. */
    async otherAccount(ctx: Context, link: VerificationLink, opened: OpenedLink, session: string) {
      const { client } = await clients.identify(link.carried)
      const locals = { mode: 'other_account', link: fieldsOf(link), session, client } as const
      pages.show(ctx, { status: 200, name, locals, ...requestOf(opened) })
    },
  }
}

async function questionOf(
  parts: HttpParts,
  ctx: Context,
  link: VerificationLink,
  opened: OpenedLink,
  fault: ConfirmFault,
) {
  const toMatch = await loginToMatch(parts, ctx, opened)
  const asked = toMatch && opened.captured ? carriedBy(opened.captured) : link.carried
  const { client } = await parts.clients.identify(asked)
  const isNotYet = fault === 'unpressed'
  const isOver = toMatch?.isOver === true || fault === 'ended'
  const waiting = toMatch && { ...toMatch, isOver, fault: isNotYet ? undefined : fault }
  return { client, isNotYet, waiting }
}

/** The login whose number is asked for. One that could not be led to its client is over. */
export async function loginToMatch(
  { clients }: HttpParts,
  ctx: Context,
  { captured, toMatch }: OpenedLink,
): Promise<LoginToMatch | undefined> {
  if (!toMatch || toMatch.isOver) return toMatch
  const mayFinish = captured !== undefined && (await clients.mayFinish(ctx, captured))
  return { ...toMatch, isOver: !mayFinish }
}

/** Why the question is asked again. `unpressed`: nobody pressed the button. */
type ConfirmFault = 'unpressed' | WaitingElsewhere['fault']

export type VerifyEmailPages = ReturnType<typeof verifyEmailPages>

type RequestOfPage = Pick<Page, 'formMayLeadTo' | 'uiLocales'>

function fieldsOf({ token, carried, signature }: VerificationLink): LinkFields {
  return { token, carried, authorizeSig: signature }
}

/** A login that waits for its address to be verified. */
export interface BlockedLogin {
  user: User
  captured: CapturedRequest
  window: OwnWindow
  /** How long its link, and so its window, lives. */
  lifetimeMs: number
  /** Until another mail may be asked for. `undefined`: at any time. */
  waitMs: number | undefined
  /** Somebody said "I have confirmed", and it is not so. */
  isNotYet?: boolean
}

export function waitingPage(
  { pendingLoginId, goesOn, number }: OwnWindow,
  forMs: number,
): WaitingPage {
  return { pendingLoginId, forMs, number, isStill: !goesOn }
}

/** The verification page in mode `blocked` (4.8), whose window goes on by itself. */
export async function blockedPage(
  { clients }: HttpParts,
  { user, captured, window, lifetimeMs, ...asked }: BlockedLogin,
): Promise<Page<'verify-email'>> {
  const carried = carriedBy(captured)
  const { client } = await clients.identify(carried)
  return {
    status: 200,
    name: 'verify-email',
    locals: {
      mode: 'blocked',
      username: user.username,
      sentTo: user.email ?? undefined,
      lifetimeMs,
      carried,
      client,
      waiting: waitingPage(window, lifetimeMs),
      ...asked,
    },
    ...pageOf(captured),
    formId: newId(),
  }
}

/** What a page takes over from the request that its form goes on with: where that may lead, and its languages. */
export function pageOf(captured: CapturedRequest): Pick<Page, 'formMayLeadTo' | 'uiLocales'> {
  const uiLocales = captured.params['ui_locales']
  return {
    formMayLeadTo: carriedBy(captured).redirectUri,
    uiLocales: typeof uiLocales === 'string' ? uiLocales : undefined,
  }
}
