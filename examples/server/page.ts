import type { Context } from 'koa'
import type { Brand } from '../../src/index.ts'
import { html, type Html } from './html.ts'

/** Path prefixes, without a slash at the end; empty for none. */
export interface Paths {
  base: string
  oauth: string
}

export interface Page {
  /** `data-page` and `data-mode` tell clients and tests where they are. */
  name: string
  mode?: string
  title: string
  content: Html
  /** A client that a form of this page may lead to: its redirect URI. */
  formMayLeadTo?: unknown
}

/** With status 200, unless another one was set before. */
export type ShowPage = (ctx: Pick<Context, 'body' | 'set'>, page: Page) => void

/** The example's own pages look like those of the flows. */
export function createShowPage({ base, oauth }: Paths, { name: brand }: Brand): ShowPage {
  const header =
    brand &&
    html`<header class="client">
      <span class="mark" aria-hidden="true">${brand.slice(0, 1)}</span><bdi>${brand}</bdi>
    </header>`
  return (ctx, { name, mode, title, content, formMayLeadTo }) => {
    ctx.set(pageHeaders(formMayLeadTo))
    ctx.body = html`<!doctype html>
      <html lang="en">
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width, initial-scale=1" />
          <meta name="color-scheme" content="light dark" />
          <title>${title}</title>
          <link rel="stylesheet" href="${oauth}/account-flows.css" />
          <link rel="stylesheet" href="${base}/example.css" />
        </head>
        <body>
          ${header}
          <main data-page="${name}" data-mode="${mode ?? 'page'}">
            <h1>${title}</h1>
            ${content}
          </main>
        </body>
      </html>`.html
  }
}

function pageHeaders(formMayLeadTo: unknown): Record<string, string> {
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

// Chromium holds form-action against every redirect that follows the post, up to the client.
function sourceOf(redirectUri: unknown): string[] {
  if (typeof redirectUri !== 'string' || !URL.canParse(redirectUri)) return []
  const { protocol, origin } = new URL(redirectUri)
  return [protocol === 'https:' || protocol === 'http:' ? origin : protocol]
}
