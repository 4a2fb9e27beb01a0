import { readFileSync } from 'node:fs'
import type { Context } from 'koa'
import type { Brand } from '../../src/index.ts'
import { html, type Html } from './html.ts'
import type { Route } from './requests.ts'
import { wordsFor, type Words } from './words.ts'

/** Path prefixes, without a slash at the end; empty for none. */
export interface Paths {
  base: string
  oauth: string
}

export interface Page {
  /**
   * `data-page` and `data-mode` tell clients and tests where they are. Title, refusal, lead and note are the words `name.mode.title`
   * and so on, or `name.title` and `name.lead`.
   */
  name: string
  mode?: string
  /** The page whose refusals it shares. */
  like?: string
  /** What the words name. */
  values?: Record<string, string>
  /** Between lead and note. */
  content?: (words: Words) => Html
  /** `ui_locales` of the authorization request that the page is part of. */
  uiLocales?: unknown
  /** A client that a form of this page may lead to: its redirect URI. */
  formMayLeadTo?: unknown
  /** Mails are shown as they look: with styles and pictures of their own. A script shows new ones as they arrive. */
  showsMails?: boolean
}

/** With status 200, unless another one was set before. */
export type ShowPage = (ctx: Pick<Context, 'body' | 'req' | 'set' | 'vary'>, page: Page) => void

/** The example's own pages look and speak like those of the flows. */
export function createShowPage({ base, oauth }: Paths, brand: Brand): ShowPage {
  const header =
    brand.name &&
    html`<header class="client">
      <span class="mark" aria-hidden="true">${brand.name.slice(0, 1)}</span>
      <bdi>${brand.name}</bdi>
    </header>`

  /** No way out of a sign-in, nor from the start to itself. */
  function footer({ name, formMayLeadTo }: Page, { t }: Words) {
    if (name === 'home' || formMayLeadTo !== undefined) return undefined
    return html`<footer class="links"><a href="${base}/">${t('brand.sign_in')}</a></footer>`
  }

  return (ctx, page) => {
    const { name, mode = 'page', like = name, values, content } = page
    const words = wordsFor(ctx.req, page.uiLocales)
    const { lang, dir, has, t } = words
    const said = (...keys: string[]) => {
      const key = keys.find(has)
      return key === undefined ? undefined : t(key, values)
    }
    const title = said(`${name}.${mode}.title`, `${name}.title`) ?? name
    const refusal = said(`${name}.${mode}.refusal`, `${like}.${mode}.refusal`)
    const lead = said(`${name}.${mode}.lead`, `${name}.lead`)
    const note = said(`${name}.${mode}.note`)
    const heading = refusal === undefined ? title : t('refusal.title', { title })
    ctx.set(pageHeaders(page))
    ctx.set('Content-Language', lang)
    ctx.vary('Accept-Language')
    ctx.body = html`<!doctype html>
      <html lang="${lang}" dir="${dir}">
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width, initial-scale=1" />
          <meta name="color-scheme" content="light dark" />
          <title>${brand.name ? `${heading} · ${brand.name}` : heading}</title>
          <link rel="stylesheet" href="${oauth}/account-flows.css" />
          <link rel="stylesheet" href="${base}/example.css" />
          <link rel="icon" href="${oauth}/account-flows.svg" />
          ${page.showsMails ? html`<script type="module" src="${base}/mailbox.js"></script>` : undefined}
        </head>
        <body>
          ${header}
          <main data-page="${name}" data-mode="${mode}">
            <h1>${title}</h1>
            ${lead && html`<p>${lead}</p>`}
            ${
              refusal &&
              html`<div id="refusal" class="refusal" role="alert" tabindex="-1" autofocus>
                <p>${refusal}</p>
              </div>`
            }
            ${content?.(words)} ${note && html`<p class="note">${note}</p>`}
          </main>
          ${footer(page, words)}
        </body>
      </html>`.html
  }
}

function pageHeaders({ formMayLeadTo, showsMails }: Page): Record<string, string> {
  return {
    'Content-Type': 'text/html; charset=utf-8',
    'Cache-Control': 'no-store',
    'Content-Security-Policy': [
      "default-src 'none'",
      `style-src 'self'${showsMails ? " 'unsafe-inline'" : ''}`,
      `img-src 'self'${showsMails ? ' data:' : ''}`,
      ...(showsMails ? ["script-src 'self'", "connect-src 'self'"] : []),
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

// Chromium holds form-action against every redirect that follows the post, up to the client.
function sourceOf(redirectUri: unknown): string[] {
  if (typeof redirectUri !== 'string' || !URL.canParse(redirectUri)) return []
  const { protocol, origin } = new URL(redirectUri)
  return [protocol === 'https:' || protocol === 'http:' ? origin : protocol]
}

/** What these pages need beside the style sheet of the flows. */
export function exampleFiles({ base }: Paths) {
  function served(name: string, type: string): Route {
    const text = readFileSync(new URL(`./${name}`, import.meta.url), 'utf8')
    return {
      get(ctx) {
        ctx.set('Cache-Control', 'no-cache')
        ctx.set('X-Content-Type-Options', 'nosniff')
        ctx.type = `${type}; charset=utf-8`
        ctx.body = text
      },
    }
  }

  return {
    [`${base}/example.css`]: served('example.css', 'text/css'),
    [`${base}/mailbox.js`]: served('mailbox.js', 'text/javascript'),
  }
}
