import type { MailName, RenderedMail, Views } from './views.ts'

const HOUR_MS = 3_600_000

/** Where the link of a preview leads. */
const PATHS: Record<string, string> = {
  'password-reset': '/reset-password',
  'email-verification': '/verify-email',
  'password-changed': '/forgot-password',
}

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
  const path = Object.hasOwn(PATHS, name) ? PATHS[name] : undefined
  if (path === undefined || !views.locales.includes(locale)) return undefined
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- these are names of mails
  return views.mail(name as MailName, {
    username: 'ann',
    link: `${oauthUrl}${path}`,
    at,
    lifetimeMs: HOUR_MS,
    clientName: 'Example App',
  })
}

/** What is sent to try the settings out. */
export function testMail(views: Views, at: Date): RenderedMail {
  return views.mail('test', { username: '', link: '', at })
}
