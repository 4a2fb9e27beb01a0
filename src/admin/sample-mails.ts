import type { RenderedMail, Views } from '../views/index.ts'

const HOUR_MS = 3_600_000

/** Where the link of a preview leads, and how long it lives. */
const PREVIEWS = {
  'password-reset': { path: '/reset-password', lifetimeMs: HOUR_MS },
  'email-verification': { path: '/verify-email', lifetimeMs: 24 * HOUR_MS },
  'password-changed': { path: '/forgot-password', lifetimeMs: undefined },
} as const

const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'

export interface PreviewWish {
  name: string
  locale: string
  oauthUrl: string
  at: Date
}

/** A mail as it would leave, with made-up values and no token. `undefined`: there is no such mail or locale. */
export function previewMail(
  views: Views,
  { name, locale, oauthUrl, at }: PreviewWish,
): RenderedMail | undefined {
  if (!isPreviewed(name) || !views.locales.includes(locale)) return undefined
  const { path, lifetimeMs } = PREVIEWS[name]
  const locals = {
    username: 'ann',
    link: `${oauthUrl}${path}`,
    at,
    ...(lifetimeMs !== undefined && { lifetimeMs }),
    clientName: 'Example App',
    userAgent: BROWSER,
  }
  return views.mail(name, locals, { asked: locale })
}

function isPreviewed(name: string): name is keyof typeof PREVIEWS {
  return Object.hasOwn(PREVIEWS, name)
}

/** What is sent to try the settings out. */
export function testMail(views: Views, at: Date): RenderedMail {
  return views.mail('test', { username: '', link: '', at })
}
