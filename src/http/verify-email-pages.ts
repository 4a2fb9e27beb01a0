import type { Context } from 'koa'
import type { LinkRefusal, OpenedLink } from '../flows/email-verification.ts'
import type { VerificationLink } from '../flows/link.ts'
import type { Clients } from '../oidc/clients.ts'
import type { CarriedParameters } from '../ports/index.ts'
import type { LinkFields } from '../views/index.ts'
import { pageOf } from './captured-page.ts'
import type { Page, Pages } from './pages.ts'

export interface VerifyEmailPages {
  /** `link`: the one that was opened, if it is genuine. */
  expired(
    ctx: Context,
    refusal: Omit<LinkRefusal, 'refusal'>,
    link?: VerificationLink,
  ): Promise<void>
  verified(ctx: Context, carried: CarriedParameters): Promise<void>
  /** `goesOnElsewhere`: the window that logged in finishes the login. */
  confirmed(ctx: Context, opened: OpenedLink, goesOnElsewhere: boolean): Promise<void>
  /** The login went on in the waiting window of this browser. */
  signedIn(ctx: Context, opened: OpenedLink): Promise<void>
  /** The question whether this browser may go on. `isNotYet`: it was answered, and nobody pressed the button. */
  confirm(
    ctx: Context,
    link: VerificationLink,
    opened: OpenedLink,
    isNotYet?: boolean,
  ): Promise<void>
  /** The question which account to go on as; `session` names the one that it is about. */
  otherAccount(ctx: Context, link: VerificationLink, opened: OpenedLink, session: string): void
}

export function verifyEmailPages(
  pages: Pick<Pages, 'show'>,
  clients: Pick<Clients, 'restart' | 'shown'>,
): VerifyEmailPages {
  const name = 'verify-email'

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
    async expired(ctx, { reason, carried }, link) {
      const client = await clients.restart(carried)
      const renew = link && reason === 'expired' ? fieldsOf(link) : undefined
      const locals = { mode: 'expired', reason, carried, client, renew } as const
      pages.show(ctx, { status: 400, name, locals })
    },

    verified: (ctx, carried) => showVerified(ctx, carried, false, {}),

    confirmed: (ctx, opened, goesOnElsewhere) =>
      showVerified(ctx, opened.token.carried, goesOnElsewhere, requestOf(opened)),

    async signedIn(ctx, opened) {
      const locals = {
        mode: 'signed_in',
        client: await clients.restart(opened.token.carried),
      } as const
      pages.show(ctx, { status: 200, name, locals, ...requestOf(opened) })
    },

    async confirm(ctx, link, opened, isNotYet = false) {
      const client = await clients.shown(link.carried)
      const locals = { mode: 'confirm', link: fieldsOf(link), client, isNotYet } as const
      pages.show(ctx, { status: isNotYet ? 400 : 200, name, locals, ...requestOf(opened) })
    },

    otherAccount(ctx, link, opened, session) {
      const locals = { mode: 'other_account', link: fieldsOf(link), session } as const
      pages.show(ctx, { status: 200, name, locals, ...requestOf(opened) })
    },
  }
}

type RequestOfPage = Pick<Page, 'formMayLeadTo' | 'uiLocales'>

// A link without parameters may finish a request that has them: they were too long for an address.
function requestOf({ captured, token }: OpenedLink): RequestOfPage {
  return captured ? pageOf(captured) : { formMayLeadTo: token.carried.redirectUri }
}

function fieldsOf({ token, carried, signature }: VerificationLink): LinkFields {
  return { token, carried, authorizeSig: signature }
}
