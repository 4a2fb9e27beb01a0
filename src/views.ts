import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import pug from 'pug'
import type { CarriedParameters } from './ports.ts'

type ForgotPassword = { mode: 'form' | 'invalid'; carried: CarriedParameters } | { mode: 'sent' }

export type ResetFormMode =
  'form' | 'password_mismatch' | 'password_too_short' | 'password_too_long' | 'password_invalid'

/** `href` is left out of the page unless it is http, https, or a private-use scheme such as `com.example.app:`. */
export interface ClientLink {
  clientName: string
  href: string
}

type ResetPassword =
  | { mode: ResetFormMode; token: string; minLength: number; maxLength: number }
  | { mode: 'invalid' }
  | { mode: 'done'; client?: ClientLink }

type VerifyEmail =
  | { mode: 'blocked'; username: string; lifetimeMs: number; carried: CarriedParameters }
  | { mode: 'expired'; carried: CarriedParameters }
  | { mode: 'sent' | 'verified' }
  | { mode: 'other_account'; token: string; carried: CarriedParameters; authorizeSig?: string }

export type ErrorMode =
  | 'refused'
  | 'not_found'
  | 'method_not_allowed'
  | 'unsupported_media_type'
  | 'body_too_large'
  | 'bad_request'
  | 'too_many_requests'
  | 'unavailable'
  | 'error'

/** What each page needs, by its `data-page`; `mode` is its `data-mode`. */
export interface PageLocals {
  'forgot-password': ForgotPassword
  'reset-password': ResetPassword
  'verify-email': VerifyEmail
  error: { mode: ErrorMode }
}

export type PageName = keyof PageLocals

export type MailName = 'password-reset' | 'email-verification' | 'password-changed' | 'test'

export interface MailLocals {
  username: string
  /** An http or https address. */
  link: string
  /** When it was asked for, or when the password was changed. */
  at: Date
  /** `undefined`: the link does not expire. */
  lifetimeMs?: number
  clientName?: string
}

export interface RenderedMail {
  subject: string
  text: string
  html: string
}

export interface Views {
  page<N extends PageName>(name: N, locals: PageLocals[N]): string
  mail(name: MailName, locals: MailLocals): RenderedMail
  /** The style sheet of the pages, served at `{oauthPath}/account-flows.css`. */
  stylesheet: string
  /** Languages that there are words in (BCP 47). */
  locales: string[]
}

type Values = Record<string, string | number>

/**
 * Pages and mails out of `views/`, worded by `views/locales/en.json`. Templates are compiled when they are first used.
 *
 * @param oauthPath - where the forms and the style sheet are; may be empty.
 */
export function createViews(oauthPath: string): Views {
  const { has, t } = readCatalog('en')
  const [lang, dir] = [t('lang'), t('dir')]
  const templates = new Map<string, pug.compileTemplate>()

  function render(name: string, locals: object): string {
    const options = { compileDebug: false, doctype: 'html' }
    const compiled = templates.get(name) ?? pug.compileFile(pathOf(`${name}.pug`), options)
    templates.set(name, compiled)
    return compiled({ ...locals, oauthPath, t, lang, dir })
  }

  return {
    stylesheet: readFileSync(pathOf('account-flows.css'), 'utf8'),
    locales: [lang],

    page(name, locals) {
      const key = `${name}.${locals.mode}`
      const limits =
        'minLength' in locals ? { min: locals.minLength, max: locals.maxLength } : undefined
      return render(`pages/${name}`, {
        ...locals,
        page: name,
        title: t(has(`${key}.title`) ? `${key}.title` : `${name}.title`),
        refusal: has(`${key}.refusal`) ? t(`${key}.refusal`, limits) : undefined,
        limits,
        lifetime: 'lifetimeMs' in locals ? lifetimeText(locals.lifetimeMs, lang) : undefined,
        client: 'client' in locals ? shownLink(locals.client) : undefined,
      })
    },

    mail(name, { username, link, at, lifetimeMs, clientName = '' }) {
      const user = unlinkable(displayName(username))
      const client = unlinkable(displayName(clientName))
      const subject = t(`mail.${name}.subject`)
      const values: Values = {
        greeting: user ? t('mail.greeting', { user }) : t('mail.greeting_nameless'),
        lead: t(`mail.${name}.lead${client && '_client'}`, { client, at: timeText(at, lang) }),
        link,
        ...(lifetimeMs !== undefined && {
          lifetime: t(`mail.${name}.lifetime`, { lifetime: lifetimeText(lifetimeMs, lang) }),
        }),
      }
      const text = readFileSync(pathOf(`mails/${name}.txt`), 'utf8')
      return {
        subject,
        text: fill(text, (key) => values[key] ?? t(key)),
        html: render(`mails/${name}`, { ...values, title: subject }),
      }
    },
  }
}

function pathOf(name: string): string {
  return fileURLToPath(new URL(`../views/${name}`, import.meta.url))
}

function readCatalog(locale: string) {
  const parsed: unknown = JSON.parse(readFileSync(pathOf(`locales/${locale}.json`), 'utf8'))
  const words = new Map<string, unknown>(Object.entries(parsed ?? {}))
  return {
    has: (key: string) => words.has(key),
    /** A missing word is a defect of the package: thrown, never shown to a user. */
    t(key: string, values: Values = {}): string {
      const word = words.get(key)
      if (typeof word !== 'string') throw new TypeError(`locales/${locale}.json has no text ${key}`)
      return fill(word, (name) => values[name])
    },
  }
}

/** One pass: what a value contains is never looked at again. */
function fill(text: string, valueOf: (name: string) => string | number | undefined): string {
  return text.replace(/\{([\w.-]+)\}/g, (braces, name: string) => String(valueOf(name) ?? braces))
}

/** Rounds down, so that it never promises more than the link holds. One day is told as 24 hours. */
function lifetimeText(ms: number, lang: string): string {
  const seconds = Math.floor(ms / 1000)
  const minutes = Math.floor(seconds / 60)
  let [amount, unit] = [minutes, 'minute']
  if (seconds < 120 && seconds % 60 !== 0) [amount, unit] = [seconds, 'second']
  else if (minutes > 1440 && minutes % 1440 === 0) [amount, unit] = [minutes / 1440, 'day']
  else if (minutes % 60 === 0) [amount, unit] = [minutes / 60, 'hour']
  return new Intl.NumberFormat(lang, { style: 'unit', unit, unitDisplay: 'long' }).format(amount)
}

/** In UTC: nobody knows where the mail is read. */
function timeText(at: Date, lang: string): string {
  const format = { dateStyle: 'long', timeStyle: 'long', timeZone: 'UTC' } as const
  return new Intl.DateTimeFormat(lang, format).format(at)
}

/** A registered redirect URI can be anything; as a link only these schemes run no script. */
function shownLink(client: ClientLink | undefined): ClientLink | undefined {
  if (!client || !URL.canParse(client.href)) return undefined
  const isSafe = /^(https?|[a-z][a-z0-9+-]*\.[a-z0-9.+-]+):$/.test(new URL(client.href).protocol)
  return isSafe ? { href: client.href, clientName: displayName(client.clientName) } : undefined
}

/** Without line breaks, control and direction characters, which could forge the text around it, and 64 characters at most. */
function displayName(name: string): string {
  // oxlint-disable-next-line typescript/no-misused-spread -- code points are what is counted
  const shown = [...name.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Z}]+/gu, ' ').trim()]
  return shown.length > 64 ? `${shown.slice(0, 63).join('')}…` : shown.join('')
}

/**
 * Mail programs turn `evil.example` into a link; a word joiner after each dot and colon, also those that an address of a page may
 * have in their place, stops them and cannot be seen.
 */
function unlinkable(name: string): string {
  return name
    .replace(/[:\uFE55\uFF1A]?[\\/\uFF0F\uFF3C]{2,}/g, ' ')
    .replace(/[.:\u2024\u3002\uFE52\uFE55\uFF0E\uFF1A\uFF61](?=\S)/g, '$&\u2060')
}
