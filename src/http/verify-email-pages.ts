import type { Context } from 'koa'
import { newId } from '../crypto/token.ts'
import type { OpenedLink } from '../flows/confirm-address.ts'
import type { LinkRefusal } from '../flows/link-refusal.ts'
import { carriedBy } from '../ports/carried-query.ts'
import type { VerificationLink } from '../ports/links.ts'
import type { PageLocals } from '../views/index.ts'
import type { HttpParts } from './parts.ts'
import { requestOf, type PageRequest } from './waiting-login-pages.ts'

/** What a verification link opens, in the language of its mail. */
export function verifyEmailPages({ pages, clients, verification }: HttpParts) {
  const name = 'verify-email'

  // Parameters that were too long for the link are taken from the login that waits.
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
    /** `link`: the one that was opened, if it is genuine. */
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
      // The page of an unknown link is the same for everybody, so it has no id of its own.
      const formId = reason === 'unknown' ? undefined : newId()
      pages.show(ctx, { name, locals, uiLocales, formId })
    },

    confirmed: (ctx: Context, opened: OpenedLink) => show(ctx, opened, { mode: 'verified' }),

    /** A browser that fetched the link ahead gets this page, and throws it away. If a person sees it, its button opens the link. */
    confirm: (ctx: Context, link: VerificationLink, opened: OpenedLink) =>
      show(ctx, opened, { mode: 'confirm', link }),

    /** Nothing is verified: the code is for the page that waits. */
    async elsewhere(ctx: Context, opened: OpenedLink) {
      const { username, login } = opened
      const shown = await verification.codeOf(opened)
      // No code is shown if the login could not reach its client.
      const mayFinish = login && (await clients.mayFinish(ctx, login.captured))
      const code = shown && mayFinish && { ...shown, at: login.createdAt }
      await show(ctx, opened, { mode: 'elsewhere', username, ...code })
    },

    /** Nothing is verified either. */
    otherAccount: (ctx: Context, opened: OpenedLink) =>
      show(ctx, opened, { mode: 'other_account' }),
  }
}
