import type { MailName, RenderedMail, Views } from './views.ts'

const HOUR_MS = 3_600_000

interface Sample {
  /** Where the link leads, below the OAuth path. */
  path: string
  /** `undefined`: the link does not expire. */
  lifetimeMs?: number
}

const SAMPLES = new Map<string, Sample>([
  ['password-reset', { path: '/reset-password', lifetimeMs: HOUR_MS }],
  ['email-verification', { path: '/verify-email', lifetimeMs: HOUR_MS }],
  ['password-changed', { path: '/forgot-password' }],
])

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
  const sample = SAMPLES.get(name)
  if (!sample || !views.locales.includes(locale)) return undefined
  const { path, ...lifetime } = sample
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- these are names of mails
  return views.mail(name as MailName, {
    username: 'ann',
    link: `${oauthUrl}${path}`,
    at,
    ...lifetime,
    clientName: 'Example App',
  })
}

/** What is sent to try the settings out. */
export function testMail(views: Views, at: Date): RenderedMail {
  return views.mail('test', { username: '', link: '', at })
}
