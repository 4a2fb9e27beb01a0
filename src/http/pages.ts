import type { ServerResponse } from 'node:http'
import type { Context } from 'koa'
import type { ErrorMode, PageLocals, PageName, Views } from '../views.ts'

export interface Page<N extends PageName = PageName> {
  status: number
  name: N
  locals: PageLocals[N]
  /** A client that the page's form may lead to: its redirect URI. */
  formMayLeadTo?: string | undefined
}

export interface Pages {
  show<N extends PageName>(ctx: Context, page: Page<N>): void
  /** The same on a bare response, for hosts that are no Koa. */
  send<N extends PageName>(res: ServerResponse, page: Page<N>): void
  showError(ctx: Context, mode: ErrorMode): void
}

const ERROR_STATUS: Record<ErrorMode, number> = {
  bad_request: 400,
  refused: 403,
  not_found: 404,
  method_not_allowed: 405,
  body_too_large: 413,
  unsupported_media_type: 415,
  too_many_requests: 429,
  error: 500,
  unavailable: 503,
}

export function createPages(views: Views): Pages {
  function show<N extends PageName>(ctx: Context, page: Page<N>) {
    ctx.status = page.status
    ctx.set(pageHeaders(page.formMayLeadTo))
    // Opened out of a mail: whatever opened it may not lead its window elsewhere while a password is typed. The other pages can
    // be part of a login in a pop-up window, which has to find its opener at the end.
    if (page.name === 'reset-password') ctx.set('Cross-Origin-Opener-Policy', 'same-origin')
    ctx.body = views.page(page.name, page.locals)
  }

  return {
    show,

    send(res, page) {
      const body = views.page(page.name, page.locals)
      res.writeHead(page.status, {
        ...pageHeaders(page.formMayLeadTo),
        'Content-Length': Buffer.byteLength(body),
      })
      res.end(body)
    },

    showError: (ctx, mode) =>
      show(ctx, { status: ERROR_STATUS[mode], name: 'error', locals: { mode } }),
  }
}

function pageHeaders(formMayLeadTo: string | undefined): Record<string, string> {
  return {
    'Content-Type': 'text/html; charset=utf-8',
    'Cache-Control': 'no-store',
    'Content-Security-Policy': [
      "default-src 'none'",
      "style-src 'self'",
      ["form-action 'self'", ...sourceOf(formMayLeadTo)].join(' '),
      "base-uri 'none'",
      "frame-ancestors 'none'",
    ].join('; '),
    'Permissions-Policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
    'X-Robots-Tag': 'noindex',
  }
}

// Chromium holds form-action against every redirect that follows the post.
function sourceOf(redirectUri: string | undefined): string[] {
  if (redirectUri === undefined || !URL.canParse(redirectUri)) return []
  const { protocol, origin, host } = new URL(redirectUri)
  if (protocol !== 'https:' && protocol !== 'http:') return [protocol]
  // A host may have a semicolon or a comma, which would begin another directive.
  return /^[\w.:[\]-]+$/.test(host) ? [origin] : []
}
