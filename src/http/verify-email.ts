import type { Context, Next } from 'koa'
import { carriedFrom } from '../carried-query.ts'
import type { EmailVerification, LinkRefusal, OpenedLink } from '../flows/email-verification.ts'
import { isBracketed, SIGNED, type VerificationLink } from '../flows/verification-link.ts'
import { loginSecond } from '../login-second.ts'
import type { Clients } from '../oidc/clients.ts'
import type { Resume } from '../oidc/resume.ts'
import type { Log, Requester } from '../ports.ts'
import type { Settings } from '../settings/table.ts'
import type { LinkFields } from '../views.ts'
import type { BrowserCookie } from './browser-cookie.ts'
import { isUnattended, isByPerson } from './cross-site.ts'
import { parseFields, readForm, type Fields } from './form.ts'
import { readingsOf } from './mended-link.ts'
import type { Pages } from './pages.ts'

export interface VerifyEmailParts {
  verification: Pick<EmailVerification, 'isGenuine' | 'open' | 'confirm' | 'recordConfirmed'>
  clients: Pick<Clients, 'genuine' | 'mayFinish' | 'restart' | 'shown'>
  resume: Resume
  browserCookie: Pick<BrowserCookie, 'read'>
  pages: Pages
  settings(): Settings
  requesterOf(ctx: Context): Requester
  log: Log
}

/** Where a confirmed link leads; decided before anything is consumed. */
interface Destination {
  go(ctx: Context, next: Next): Promise<void>
  /** The login that waits in a window of this browser goes on here instead. */
  takesTurn: boolean
}

/** 4.6. */
export function verifyEmail(parts: VerifyEmailParts) {
  const { verification, clients, resume, pages, settings, requesterOf, log } = parts

  async function showExpired(
    ctx: Context,
    refusal: Omit<LinkRefusal, 'refusal'>,
    link?: LinkFields,
  ) {
    const { reason, carried } = refusal
    const client = await clients.restart(carried)
    const renew = reason === 'expired' ? link : undefined
    const locals = { mode: 'expired', reason, carried, client, renew } as const
    pages.show(ctx, { status: 400, name: 'verify-email', locals })
  }

  async function showVerified(
    ctx: Context,
    { token: { carried } }: { token: Pick<OpenedLink['token'], 'carried'> },
    goesOnElsewhere = false,
  ) {
    const client = goesOnElsewhere ? undefined : await clients.restart(carried)
    const locals = { mode: 'verified', goesOnElsewhere, client } as const
    pages.show(ctx, { status: 200, name: 'verify-email', locals })
  }

  async function askToConfirm(ctx: Context, link: VerificationLink, needsTick: boolean) {
    const client = await clients.shown(link.carried)
    pages.show(ctx, {
      status: needsTick ? 400 : 200,
      name: 'verify-email',
      locals: { mode: 'confirm', link: fieldsOf(link), client, needsTick },
      formMayLeadTo: link.carried.redirectUri,
    })
  }

  function askAboutOtherAccount(ctx: Context, link: VerificationLink, session: string) {
    pages.show(ctx, {
      status: 200,
      name: 'verify-email',
      locals: { mode: 'other_account', link: fieldsOf(link), session },
      formMayLeadTo: link.carried.redirectUri,
    })
  }

  /** The reading that was mailed; of a link that is not genuine, the one as it is. */
  function mailedLink(query: string): VerificationLink | undefined {
    const links = readingsOf(query).flatMap((each) => readLink(parseFields(each, isSigned)) ?? [])
    return links.find(verification.isGenuine) ?? links[0]
  }

  async function openOrShowWhyNot(ctx: Context, link: VerificationLink) {
    const browser = parts.browserCookie.read(ctx.req)
    const opened = await verification.open(link, { ...requesterOf(ctx), browser })
    if (!('refusal' in opened)) return opened
    if (opened.refusal === 'verified') await showVerified(ctx, { token: opened })
    else await showExpired(ctx, opened, fieldsOf(link))
    return undefined
  }

  /** `undefined`: the link verifies, and the login is finished elsewhere or not at all. */
  async function destinationOf(
    link: OpenedLink,
    arrivedAt: number,
  ): Promise<Destination | undefined> {
    const { accountId, captured, loginEnded, token } = link
    const isElsewhere = settings().emailLinkConfirmation !== 'off' && !link.isFirstBrowser
    if (loginEnded || isElsewhere) return undefined
    if (captured === undefined) {
      const carried = await clients.genuine(token.carried)
      if (carried.clientId === undefined) return undefined
      const login = { accountId, arrivedAt }
      return { go: (ctx, next) => resume.carried(ctx, next, login, carried), takesTurn: false }
    }
    if (!(await clients.mayFinish(captured))) return undefined
    return { go: (ctx, next) => resume.captured(ctx, next, captured), takesTurn: true }
  }

  async function confirm(ctx: Context, link: OpenedLink, takesTurn: boolean): Promise<boolean> {
    const requester = requesterOf(ctx)
    const outcome = await verification.confirm(link, requester, { takesTurn })
    if (outcome === 'expired') {
      await showExpired(ctx, { reason: 'used', carried: link.token.carried })
      return false
    }
    // The link is spent: a failure to record it is no reason to leave the login unfinished.
    await verification.recordConfirmed(link, requester).catch((error: unknown) => {
      log('error', 'a verification was not recorded', { error: String(error) })
    })
    if (outcome === 'confirmed') return true
    pages.show(ctx, { status: 200, name: 'verify-email', locals: { mode: 'signed_in' } })
    return false
  }

  async function confirmOnly(ctx: Context, link: OpenedLink) {
    const goesOnElsewhere = link.captured !== undefined && !link.isFirstBrowser
    if (await confirm(ctx, link, false)) await showVerified(ctx, link, goesOnElsewhere)
  }

  /** Confirms, and finishes the login; asks first where another account is signed in (D16). */
  async function finish(
    ctx: Context,
    next: Next,
    link: VerificationLink,
    opened: OpenedLink,
    arrivedAt: number,
    replaces?: string,
  ) {
    const destination = await destinationOf(opened, arrivedAt)
    if (!destination) return confirmOnly(ctx, opened)
    const live = await resume.liveSession(ctx)
    const isForeign = live !== undefined && live.accountId !== opened.accountId
    if (isForeign && live.uid !== replaces) return askAboutOtherAccount(ctx, link, live.uid)
    if (!(await confirm(ctx, opened, destination.takesTurn))) return
    if (isForeign) await resume.endForeignSession(ctx, opened.accountId)
    await destination.go(ctx, next)
  }

  const mustBeAsked = ({ isFirstBrowser }: OpenedLink) => {
    const { emailLinkConfirmation: mode } = settings()
    return mode === 'always' || (mode === 'other_browser' && !isFirstBrowser)
  }

  return {
    async get(ctx: Context, next: Next) {
      const arrivedAt = loginSecond(new Date())
      if (ctx.method === 'HEAD') return pages.showError(ctx, 'refused')
      if (isUnattended(ctx)) return pages.showError(ctx, 'refused')
      const link = mailedLink(ctx.querystring)
      if (!link) return showExpired(ctx, UNKNOWN)
      const opened = await openOrShowWhyNot(ctx, link)
      if (!opened) return
      if (mustBeAsked(opened)) return askToConfirm(ctx, link, false)
      return finish(ctx, next, link, opened, arrivedAt)
    },

    /** The answers to the questions of D14 and D16. */
    async post(ctx: Context, next: Next) {
      const arrivedAt = loginSecond(new Date())
      const form = await readForm(ctx)
      if (typeof form === 'string') return pages.showError(ctx, form)
      const link = readLink(form)
      if (!link) return showExpired(ctx, UNKNOWN)
      const action = form.get('action')
      const isAnswer = action === 'continue' || action === 'confirm_only'
      const opened = await openOrShowWhyNot(ctx, link)
      if (!opened) return
      if (mustBeAsked(opened) && !isByPerson(ctx, form)) return askToConfirm(ctx, link, true)
      if (action === 'confirm_only') return confirmOnly(ctx, opened)
      if (!isAnswer && action !== 'confirm') return pages.showError(ctx, 'bad_request')
      return finish(ctx, next, link, opened, arrivedAt, isAnswer ? form.get('session') : undefined)
    },
  }
}

const UNKNOWN = { reason: 'unknown', carried: {} } as const

function fieldsOf({ token, carried, signature }: VerificationLink): LinkFields {
  return { token, carried, authorizeSig: signature }
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
