import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Context } from 'koa'
import type { CaptchaSources } from './captcha.ts'
import { languagesOf } from './language.ts'
import type { ErrorMode, PageLocals, PageName, Views } from '../views/index.ts'

export interface Page<N extends PageName = PageName> {
  status: number
  name: N
  locals: PageLocals[N]
  /** A client that the page's form may lead to: its redirect URI. */
  formMayLeadTo?: string | undefined
  /** `ui_locales` of the request that the page is part of, or the language of the mail that led here. What the address asks for wins. */
  uiLocales?: string | undefined
  /** Of the form that asks for a mail: sent again, it is the same request. `undefined`: each time another one. */
  formId?: string | undefined
}

export type Pages = ReturnType<typeof createPages>

/** As the page says: "wait a minute". */
export const RETRY_AFTER_SECONDS = '60'

const ERROR_STATUS: Record<ErrorMode, number> = {
  bad_request: 400,
  refused: 403,
  not_found: 404,
  method_not_allowed: 405,
  body_too_large: 413,
  unsupported_media_type: 415,
  request_too_long: 400,
  too_many_requests: 429,
  error: 500,
  unavailable: 503,
}

/** The page for what cannot be answered in another way. */
export const errorPage = (mode: ErrorMode): Page<'error'> => ({
  status: ERROR_STATUS[mode],
  name: 'error',
  locals: { mode },
})

/** @param sources - that pages with a captcha load it from. */
export function createPages(views: Views, sources?: CaptchaSources) {
  function render<N extends PageName>(req: IncomingMessage, page: Page<N>) {
    const languages = languagesOf(req, page.uiLocales)
    const { html, lang, hasCaptcha } = views.page(page.name, page.locals, languages, page.formId)
    return { html, headers: pageHeaders(page, lang, hasCaptcha ? sources : undefined) }
  }

  function show<N extends PageName>(ctx: Context, page: Page<N>) {
    const { html, headers } = render(ctx.req, page)
    ctx.status = page.status
    ctx.set(headers)
    ctx.body = html
  }

  return {
    show,

    /** The same on a bare response, for hosts that are no Koa. */
    send<N extends PageName>(req: IncomingMessage, res: ServerResponse, page: Page<N>) {
      const { html, headers } = render(req, page)
      res.writeHead(page.status, { ...headers, 'Content-Length': Buffer.byteLength(html) })
      res.end(html)
    },

    showError(ctx: Context, mode: ErrorMode) {
      if (mode === 'unavailable') ctx.set('Retry-After', RETRY_AFTER_SECONDS)
      show(ctx, errorPage(mode))
    },
  }
}

function pageHeaders(
  { name, formMayLeadTo }: Page,
  lang: string,
  sources: CaptchaSources | undefined,
): Record<string, string> {
  return {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Language': lang,
    Vary: 'Accept-Language',
    'Cache-Control': 'no-store',
    'Content-Security-Policy': policyOf({
      ...withSources(sources),
      'form-action': ["'self'", ...sourceOf(formMayLeadTo)],
      'base-uri': ["'none'"],
      'frame-ancestors': ["'none'"],
    }),
    // Opened out of a mail: whatever opened it may not lead its window elsewhere while a password is typed. The other pages can
    // be part of a login in a pop-up window, which has to find its opener at the end.
    ...((name === 'reset-password' || name === 'accept-invitation') && {
      'Cross-Origin-Opener-Policy': 'same-origin',
    }),
    'Permissions-Policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
    'X-Robots-Tag': 'noindex',
  }
}

type Policy = Readonly<Record<string, readonly string[]>>

const LOADED: Policy = {
  'default-src': ["'none'"],
  'style-src': ["'self'"],
  'script-src': ["'self'"],
  'connect-src': ["'self'"],
  'img-src': ["'self'"],
}

function withSources(sources: CaptchaSources = {}): Policy {
  const more = Object.entries(sources).map(([directive, list]) => {
    return [directive, [...new Set([...(LOADED[directive] ?? []), ...list])]] as const
  })
  return { ...LOADED, ...Object.fromEntries(more.filter(([, list]) => list.length > 0)) }
}

function policyOf(directives: Policy): string {
  return Object.entries(directives)
    .map(([name, list]) => [name, ...list].join(' '))
    .join('; ')
}

// Chromium holds form-action against every redirect that follows the post, also those of the client (decision 0023).
function sourceOf(redirectUri: string | undefined): string[] {
  if (redirectUri === undefined || !URL.canParse(redirectUri)) return []
  return [new URL(redirectUri).protocol]
}
