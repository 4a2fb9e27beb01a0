import type { Context } from 'koa'
import { newId } from '../crypto/token.ts'
import type { OpenedLink } from '../flows/confirm-address.ts'
import type { LinkRefusal } from '../flows/link-refusal.ts'
import type { LinkContext } from '../flows/link.ts'
import { carriedBy } from '../ports/carried-query.ts'
import type { CapturedRequest, CarriedParameters, User } from '../ports/index.ts'
import type { VerificationLink } from '../ports/links.ts'
import type { PendingLogin } from '../records/index.ts'
import { isVoid } from '../records/logins.ts'
import type { CodeFault } from '../views/index.ts'
import type { Page } from './pages.ts'
import type { HttpParts } from './parts.ts'

/** @param asked - `ui_locales` of the form that they answer. `undefined`: they are in the language of the mail. */
export function verifyEmailPages(parts: HttpParts, asked?: string) {
  const { pages, clients, verification } = parts
  const name = 'verify-email'

  // A link without parameters may finish a request that has them: they were too long for an address.
  function requestOf({ login, token }: OpenedLink): RequestOfPage {
    const uiLocales = asked ?? token.locale
    if (!login) return { formMayLeadTo: token.carried.redirectUri, uiLocales }
    const page = pageOf(login.captured)
    return { ...page, uiLocales: uiLocales ?? page.uiLocales }
  }

  async function showVerified(ctx: Context, carried: CarriedParameters, request: RequestOfPage) {
    const client = await clients.restart(carried)
    pages.show(ctx, { status: 200, name, locals: { mode: 'verified', client }, ...request })
  }

  return {
    /** `link`: the one that was opened, if it is genuine. */
    async expired(
      ctx: Context,
      { reason, carried, locale }: Omit<LinkRefusal, 'refusal'>,
      link?: VerificationLink,
    ) {
      const client = await clients.restart(carried)
      const renew = reason === 'expired' ? link : undefined
      const locals = { mode: 'expired', reason, carried, client, renew } as const
      // Of all links that nobody was given, the page is the same.
      const formId = reason === 'unknown' ? undefined : newId()
      pages.show(ctx, { status: 400, name, locals, uiLocales: asked ?? locale, formId })
    },

    verified: (ctx: Context, { carried, locale }: LinkContext) =>
      showVerified(ctx, carried, { uiLocales: asked ?? locale }),

    confirmed: (ctx: Context, opened: OpenedLink) =>
      showVerified(ctx, opened.token.carried, requestOf(opened)),

    /** Nobody looks at it: a browser throws away what it fetched ahead, and where it is shown all the same, its button opens the link. */
    async confirm(ctx: Context, link: VerificationLink, opened: OpenedLink) {
      const { client } = await clients.identify(link.carried)
      const locals = { mode: 'confirm', link, client } as const
      pages.show(ctx, { status: 403, name, locals, ...requestOf(opened) })
    },

    /** Nothing is verified: the code is for the page that waits. */
    async elsewhere(ctx: Context, opened: OpenedLink) {
      const { username, login, token } = opened
      const carried = login ? carriedBy(login.captured) : token.carried
      const shown = await verification.codeOf(opened)
      // A login that could not be led to its client is over.
      const mayFinish = login && (await clients.mayFinish(ctx, login.captured))
      const locals = {
        mode: 'elsewhere',
        username,
        client: (await clients.identify(carried)).client,
        ...(shown && mayFinish && { ...shown, at: login.createdAt }),
      } as const
      pages.show(ctx, { status: 200, name, locals, ...requestOf(opened) })
    },

    /** Nothing is verified either. */
    async otherAccount(ctx: Context, opened: OpenedLink) {
      const { client } = await clients.identify(opened.token.carried)
      const locals = { mode: 'other_account', client } as const
      pages.show(ctx, { status: 200, name, locals, ...requestOf(opened) })
    },
  }
}

type RequestOfPage = Pick<Page, 'formMayLeadTo' | 'uiLocales'>

/** A login that waits for its address to be verified. */
export interface BlockedLogin {
  user: User
  login: PendingLogin
  /** How long its link, and so its page, lives. */
  lifetimeMs: number
  /** Until another mail may be asked for. `undefined`: at any time. */
  waitMs: number | undefined
  /** What is wrong with the code that was sent. */
  fault?: CodeFault | undefined
}

/** The verification page in mode `blocked` (4.8), or in mode `ended` of a login that is over. */
export async function blockedPage(
  { clients }: HttpParts,
  { user, login, ...asked }: BlockedLogin,
): Promise<Page<'verify-email'>> {
  const { id, captured } = login
  const carried = carriedBy(captured)
  if (isVoid(login)) {
    const locals = { mode: 'ended', client: await clients.restart(carried) } as const
    return { status: 400, name: 'verify-email', locals, ...pageOf(captured) }
  }
  const { client } = await clients.identify(carried)
  return {
    status: asked.fault && asked.fault.reason !== 'not_yet' ? 400 : 200,
    name: 'verify-email',
    locals: {
      mode: 'blocked',
      username: user.username,
      sentTo: user.email ?? undefined,
      carried,
      client,
      waiting: id,
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
