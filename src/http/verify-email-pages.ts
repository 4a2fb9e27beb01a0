import type { Context } from 'koa'
import { newId } from '../crypto/token.ts'
import type { OpenedLink } from '../flows/confirm-address.ts'
import type { LinkRefusal } from '../flows/link-refusal.ts'
import { carriedBy } from '../ports/carried-query.ts'
import type { CapturedRequest, User } from '../ports/index.ts'
import type { VerificationLink } from '../ports/links.ts'
import type { PendingLogin } from '../records/index.ts'
import { isVoid } from '../records/logins.ts'
import type { CodeFault, PageLocals } from '../views/index.ts'
import type { Page } from './pages.ts'
import type { HttpParts } from './parts.ts'

/** What a verification link opens, in the language of its mail. */
export function verifyEmailPages({ pages, clients, verification }: HttpParts) {
  const name = 'verify-email'

  // Parameters that were too long for the link are taken from the login that waits.
  async function show(
    ctx: Context,
    { login, token: { carried, locale } }: OpenedLink,
    status: number,
    locals: PageLocals['verify-email'],
  ) {
    const client = await clients.restart(login ? carriedBy(login.captured) : carried)
    const page: RequestOfPage = login
      ? pageOf(login.captured)
      : { formMayLeadTo: carried.redirectUri }
    const uiLocales = locale ?? page.uiLocales
    pages.show(ctx, { status, name, locals: { ...locals, client }, ...page, uiLocales })
  }

  return {
    /** `link`: the one that was opened, if it is genuine. */
    async refused(
      ctx: Context,
      { refusal, reason, carried, locale: uiLocales }: LinkRefusal,
      link?: VerificationLink,
    ) {
      const client = await clients.restart(carried)
      const verified = { status: 200, name, locals: { mode: 'verified', client } } as const
      if (refusal === 'verified') return pages.show(ctx, { ...verified, uiLocales })
      const renew = reason === 'expired' ? link : undefined
      const locals = { mode: 'expired', reason, carried, client, renew } as const
      // The page of an unknown link is the same for everybody, so it has no id of its own.
      const formId = reason === 'unknown' ? undefined : newId()
      pages.show(ctx, { status: 400, name, locals, uiLocales, formId })
    },

    confirmed: (ctx: Context, opened: OpenedLink) => show(ctx, opened, 200, { mode: 'verified' }),

    /** A browser that fetched the link ahead gets this page, and throws it away. If a person sees it, its button opens the link. */
    confirm: (ctx: Context, link: VerificationLink, opened: OpenedLink) =>
      show(ctx, opened, 403, { mode: 'confirm', link }),

    /** Nothing is verified: the code is for the page that waits. */
    async elsewhere(ctx: Context, opened: OpenedLink) {
      const { username, login } = opened
      const shown = await verification.codeOf(opened)
      // No code is shown if the login could not reach its client.
      const mayFinish = login && (await clients.mayFinish(ctx, login.captured))
      const code = shown && mayFinish && { ...shown, at: login.createdAt }
      await show(ctx, opened, 200, { mode: 'elsewhere', username, ...code })
    },

    /** Nothing is verified either. */
    otherAccount: (ctx: Context, opened: OpenedLink) =>
      show(ctx, opened, 200, { mode: 'other_account' }),
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
  parts: HttpParts,
  { user, login, ...asked }: BlockedLogin,
): Promise<Page<'verify-email'>> {
  const { id, captured } = login
  if (isVoid(login)) return endPage(parts, 'ended', captured)
  const carried = carriedBy(captured)
  const { client } = await parts.clients.identify(carried)
  const whose = { username: user.username, sentTo: user.email ?? undefined, waiting: id }
  const locals = { mode: 'blocked', ...whose, carried, client, ...asked } as const
  const status = asked.fault && asked.fault.reason !== 'not_yet' ? 400 : 200
  return { status, name: 'verify-email', locals, ...pageOf(captured), formId: newId() }
}

/** The page of a login that waits no more. `captured`: its request, if it is one of this browser. */
export async function endPage(
  { clients }: HttpParts,
  mode: 'verified' | 'signed_in' | 'ended',
  captured: CapturedRequest | undefined,
): Promise<Page<'verify-email'>> {
  const client = captured && (await clients.restart(carriedBy(captured)))
  const status = mode === 'ended' ? 400 : 200
  return {
    status,
    name: 'verify-email',
    locals: { mode, client },
    ...(captured && pageOf(captured)),
  }
}

/** What a page takes over from the request that its form goes on with: where that may lead, and its languages. */
function pageOf(captured: CapturedRequest): RequestOfPage {
  const uiLocales = captured.params['ui_locales']
  return {
    formMayLeadTo: carriedBy(captured).redirectUri,
    uiLocales: typeof uiLocales === 'string' ? uiLocales : undefined,
  }
}
