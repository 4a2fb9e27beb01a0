import type { Context, Next } from 'koa'
import { carriedFrom } from '../carried-query.ts'
import type { EmailVerification, OpenedLink } from '../flows/email-verification.ts'
import { isBracketed, SIGNED, type VerificationLink } from '../flows/verification-link.ts'
import { loginSecond } from '../login-second.ts'
import type { Clients } from '../oidc/clients.ts'
import type { Resume } from '../oidc/resume.ts'
import type { CarriedParameters, Log, Requester } from '../ports.ts'
import { isUnattended } from './cross-site.ts'
import { parseFields, readForm, type Fields } from './form.ts'
import type { Pages } from './pages.ts'

export interface VerifyEmailParts {
  verification: Pick<EmailVerification, 'open' | 'confirm' | 'recordConfirmed'>
  clients: Pick<Clients, 'genuine' | 'mayFinish'>
  resume: Resume
  pages: Pages
  requesterOf(ctx: Context): Requester
  log: Log
}

/** Where a confirmed link leads; decided before anything is consumed. */
type Destination = (ctx: Context, next: Next) => Promise<void>

/** 4.6. */
export function verifyEmail({
  verification,
  clients,
  resume,
  pages,
  requesterOf,
  log,
}: VerifyEmailParts) {
  const showExpired = (ctx: Context, carried: CarriedParameters) =>
    pages.show(ctx, { status: 400, name: 'verify-email', locals: { mode: 'expired', carried } })

  const showVerified = async (ctx: Context) =>
    pages.show(ctx, { status: 200, name: 'verify-email', locals: { mode: 'verified' } })

  function askAboutOtherAccount(ctx: Context, { token, carried, signature }: VerificationLink) {
    pages.show(ctx, {
      status: 200,
      name: 'verify-email',
      locals: { mode: 'other_account', token, carried, authorizeSig: signature },
      formMayLeadTo: carried.redirectUri,
    })
  }

  async function openOrShowWhyNot(ctx: Context, link: VerificationLink) {
    const opened = await verification.open(link, requesterOf(ctx))
    if (!('refusal' in opened)) return opened
    if (opened.refusal === 'verified') await showVerified(ctx)
    else showExpired(ctx, opened.carried)
    return undefined
  }

  async function destinationOf(
    link: OpenedLink,
    arrivedAt: number,
  ): Promise<Destination | undefined> {
    const { accountId, captured, loginEnded, token } = link
    if (loginEnded) return undefined
    if (captured === undefined) {
      const carried = await clients.genuine(token.carried)
      if (carried.clientId === undefined) return undefined
      return (ctx, next) => resume.carried(ctx, next, { accountId, arrivedAt }, carried)
    }
    if (!(await clients.mayFinish(captured))) return undefined
    return (ctx, next) => resume.captured(ctx, next, captured)
  }

  async function confirm(ctx: Context, next: Next, link: OpenedLink, onward: Destination) {
    const requester = requesterOf(ctx)
    const outcome = await verification.confirm(link, requester)
    if (outcome === 'expired') return showExpired(ctx, link.token.carried)
    // The link is spent: a failure to record it is no reason to leave the login unfinished.
    await verification.recordConfirmed(link, requester).catch((error: unknown) => {
      log('error', 'a verification was not recorded', { error: String(error) })
    })
    await onward(ctx, next)
  }

  return {
    async get(ctx: Context, next: Next) {
      const arrivedAt = loginSecond(new Date())
      if (ctx.method === 'HEAD') return pages.showError(ctx, 'refused')
      if (isUnattended(ctx)) return pages.showError(ctx, 'refused')
      const link = readLink(parseFields(ctx.querystring, isSigned))
      if (!link) return showExpired(ctx, {})
      const opened = await openOrShowWhyNot(ctx, link)
      if (!opened) return
      const destination = await destinationOf(opened, arrivedAt)
      if (!destination) return confirm(ctx, next, opened, showVerified)
      const signedIn = await resume.signedInAccount(ctx)
      if (signedIn !== undefined && signedIn !== opened.accountId) {
        return askAboutOtherAccount(ctx, link)
      }
      return confirm(ctx, next, opened, destination)
    },

    /** The answer to the question about another account's session (D16). */
    async post(ctx: Context, next: Next) {
      const arrivedAt = loginSecond(new Date())
      const form = await readForm(ctx)
      if (typeof form === 'string') return pages.showError(ctx, form)
      const action = form.get('action')
      if (action !== 'continue' && action !== 'confirm_only') {
        return pages.showError(ctx, 'bad_request')
      }
      const link = readLink(form)
      if (!link) return showExpired(ctx, {})
      const opened = await openOrShowWhyNot(ctx, link)
      if (!opened) return
      const destination = action === 'continue' ? await destinationOf(opened, arrivedAt) : undefined
      if (!destination) return confirm(ctx, next, opened, showVerified)
      return confirm(ctx, next, opened, async () => {
        await resume.endForeignSession(ctx, opened.accountId)
        await destination(ctx, next)
      })
    },
  }
}

// Others in the link are ignored (D13): mail programs and campaigns add their own.
function isSigned(name: string): boolean {
  return SIGNED.includes(name) || isBracketed(name)
}

// A signed parameter that is repeated or bracketed is none of ours (D13).
function readLink(fields: Fields | undefined): VerificationLink | undefined {
  const token = fields?.get('token')
  const signature = fields?.get('authorize_sig')
  if (!fields || token === undefined || signature === undefined) return undefined
  const names = [...fields.keys()]
  if (names.some(isBracketed)) return undefined
  return { token, carried: carriedFrom(fields), signature }
}
