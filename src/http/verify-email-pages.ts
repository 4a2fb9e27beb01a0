import type { Context } from 'koa'
import { newId } from '../crypto/token.ts'
import type { OpenedLink, LinkRefusal } from '../flows/email-verification.ts'
import { carriedBy, type VerificationLink } from '../contract/requests.ts'
import type { PageLocals } from '../views/index.ts'
import type { HttpParts } from './parts.ts'
import { requestOf, type PageRequest } from './waiting-login-pages.ts'

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
