/** How a page is answered: in which language, and with which headers. `views/` says with which HTML and status. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Context } from 'koa'
import type { Log } from '../contract/index.ts'
import { newId } from '../crypto/token.ts'
import type { Clients } from '../oidc/clients.ts'
import type { Settings } from '../settings/table.ts'
import type { ErrorMode, PageLocals, PageName, Views } from '../views/index.ts'
import { chooseLocale, type Languages } from '../views/languages.ts'
import { PAGES_WITH_PASSWORD } from '../views/page-locals.ts'
import type { CaptchaSources } from './captcha.ts'
import { reportFailure, RETRY_AFTER_SECONDS } from './failure.ts'
import { uiLocalesInUrl } from './input.ts'

export interface Page<N extends PageName = PageName> {
  name: N
  locals: PageLocals[N]
  /** The redirect URI of the client that the page's form may lead to. */
  formMayLeadTo?: string | undefined
  /** Of the authorization request, or the language of the mail that led here. `ui_locales` in the address win. */
  uiLocales?: string | undefined
  /** The id of a form that is shown again as the same request. `undefined`: that form had no id. Absent: the form gets a new id. */
  formId?: string | undefined
}

export type Pages = ReturnType<typeof createPages>

export interface PageParts {
  pages: Pages
  clients: Clients
  settings(): Settings
}

export const errorPage = (mode: ErrorMode): Page<'error'> => ({ name: 'error', locals: { mode } })

export function createPages(views: Views, log: Log, sources?: CaptchaSources) {
  function render<N extends PageName>(req: IncomingMessage, page: Page<N>) {
    const languages = languagesOf(req, page.uiLocales)
    const shown = views.page(page.name, page.locals, languages, formIdOf(page))
    const { html, status, lang, hasCaptcha } = shown
    return { html, status, headers: pageHeaders(page, lang, hasCaptcha ? sources : undefined) }
  }

  function show<N extends PageName>(ctx: Context, page: Page<N>) {
    const { html, status, headers } = render(ctx.req, page)
    ctx.status = status
    ctx.set(headers)
    ctx.body = html
  }

  function showError(ctx: Context, mode: ErrorMode) {
    if (mode === 'unavailable') ctx.set('Retry-After', RETRY_AFTER_SECONDS)
    show(ctx, errorPage(mode))
  }

  /** `path` is that of the request as it came. */
  function showFailure(ctx: Context, error: unknown, path = ctx.path) {
    showError(ctx, reportFailure(ctx, { message: 'request failed', path, log }, error))
    ctx.remove('Location')
    ctx.remove('Set-Cookie')
  }

  return {
    show,
    showError,
    showFailure,

    /** While the database cannot be reached: a page for browsers, and JSON for the clients of the provider. */
    showOutage(ctx: Context, error: unknown) {
      showFailure(ctx, error)
      if (ctx.accepts('json', 'html') === 'html') return
      const error_description = 'the database cannot be reached'
      ctx.body = { error: 'temporarily_unavailable', error_description }
    },

    send<N extends PageName>(req: IncomingMessage, res: ServerResponse, page: Page<N>) {
      const { html, status, headers } = render(req, page)
      res.writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(html) })
      res.end(html)
    },
  }
}

function formIdOf(page: Page): string | undefined {
  if ('formId' in page) return page.formId
  // The page of an unknown link is always the same.
  return 'reason' in page.locals && page.locals.reason === 'unknown' ? undefined : newId()
}

function pageHeaders(page: Page, lang: string, sources?: CaptchaSources): Record<string, string> {
  const { name, formMayLeadTo } = page
  return {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Language': lang,
    Vary: 'Accept-Language',
    'Cache-Control': 'no-store',
    'Content-Security-Policy': policyOf(sources, formMayLeadTo),
    // The opener must not navigate the window while the user types a password. Other pages can be part of a login in a pop-up window, which
    // needs its opener at the end.
    ...(PAGES_WITH_PASSWORD.includes(name) && { 'Cross-Origin-Opener-Policy': 'same-origin' }),
    'Permissions-Policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
    'X-Robots-Tag': 'noindex',
  }
}

function policyOf(sources: CaptchaSources = {}, redirectUri: string | undefined): string {
  const policy = new Map<string, readonly string[]>([['default-src', ["'none'"]]])
  for (const loaded of ['style-src', 'script-src', 'connect-src', 'img-src'])
    policy.set(loaded, ["'self'"])
  for (const [directive, list] of Object.entries(sources))
    if (list.length > 0) policy.set(directive, [...(policy.get(directive) ?? []), ...list])
  policy.set('form-action', ["'self'", ...sourceOf(redirectUri)])
  policy.set('base-uri', ["'none'"]).set('frame-ancestors', ["'none'"])
  return [...policy].map(([name, list]) => [name, ...new Set(list)].join(' ')).join('; ')
}

// Chromium applies form-action to every redirect that follows the post, also to those of the client (decision 0023).
function sourceOf(redirectUri: string | undefined): string[] {
  if (redirectUri === undefined || !URL.canParse(redirectUri)) return []
  return [new URL(redirectUri).protocol]
}

function languagesOf(req: IncomingMessage, uiLocales?: string): Languages {
  return {
    asked: uiLocalesInUrl(req.url) ?? uiLocales,
    accepted: req.headers['accept-language'],
  }
}

/**
 * The language for a page of your own, such as your login page. It is chosen as for our pages: by `ui_locales` in the address, then by
 * `uiLocales`, then by `Accept-Language`. A near language counts: `de-AT` is answered with `de`.
 *
 * @param languages - Those that your page has words in (BCP 47). If the reader wants none of them, the answer is the first.
 * @param uiLocales - `ui_locales` of the authorization request: `interaction.params.ui_locales`. If it is no string, it counts as absent.
 * @example
 * const lang = languageFor(req, ['en', 'de'], interaction.params.ui_locales)
 */
export function languageFor(
  req: IncomingMessage,
  languages: readonly [string, ...string[]],
  uiLocales?: unknown,
): string {
  const asked = typeof uiLocales === 'string' ? uiLocales : undefined
  return chooseLocale(languages, languagesOf(req, asked), languages[0])
}
