/** Amounts, times and names in the words of a language. A stranger may have chosen the names. */
import type { Catalog } from './locales.ts'
import type { ShownApps, ShownClient, SignedOutApps } from './page-locals.ts'

/** Rounds down, so that the link works at least as long. One day is shown as 24 hours. */
export function lifetimeText(ms: number, lang: string): string {
  const seconds = Math.floor(ms / 1000)
  const minutes = Math.floor(seconds / 60)
  if (seconds < 120 && seconds % 60 !== 0) return amountText(seconds, 'second', lang)
  if (minutes > 1440 && minutes % 1440 === 0) return amountText(minutes / 1440, 'day', lang)
  if (minutes % 60 === 0) return amountText(minutes / 60, 'hour', lang)
  return amountText(minutes, 'minute', lang)
}

/** Rounds up, so that the user does not come back too early. */
export function waitText(ms: number, lang: string): string {
  const minutes = Math.ceil(ms / 60_000)
  if (minutes <= 90) return amountText(minutes, 'minute', lang)
  const hours = Math.ceil(minutes / 60)
  if (hours <= 48) return amountText(hours, 'hour', lang)
  return amountText(Math.ceil(hours / 24), 'day', lang)
}

export const numberText = (value: number, lang: string) => numbers(lang).format(value)

type Unit = 'second' | 'minute' | 'hour' | 'day'

export const amountText = (amount: number, unit: Unit, lang: string) =>
  numbers(`${lang} ${unit}`).format(amount)

const numbers = madeOnce((langAndUnit) => {
  const [lang, unit] = langAndUnit.split(' ')
  return new Intl.NumberFormat(lang, unit ? { style: 'unit', unit, unitDisplay: 'long' } : {})
})

/** To the minute, in UTC, because the time zone of the reader is not known. */
export const timeText = (at: Date, lang: string) => times(lang).format(at)

const times = madeOnce(
  (lang) =>
    new Intl.DateTimeFormat(lang, {
      year: 'numeric',
      month: 'long',
      day: 'numeric',
      hour: 'numeric',
      minute: '2-digit',
      timeZone: 'UTC',
      timeZoneName: 'short',
    }),
)

export const eitherOf = (names: readonly string[], lang: string) => alternatives(lang).format(names)

const alternatives = madeOnce((lang) => new Intl.ListFormat(lang, { type: 'disjunction' }))

const lists = madeOnce((lang) => new Intl.ListFormat(lang))

/** Formatters take longer to make than to use, and there are few languages. */
function madeOnce<Format>(make: (key: string) => Format): (key: string) => Format {
  const made = new Map<string, Format>()
  return (key) => {
    const format = made.get(key) ?? make(key)
    made.set(key, format)
    return format
  }
}

/** Registered addresses can have any scheme. Links with these ones run no script. */
export function shownClient(client: ShownClient | undefined): ShownClient | undefined {
  if (!client) return undefined
  const { clientName, href, ...others } = client
  const protocol = href !== undefined && URL.canParse(href) ? new URL(href).protocol : ''
  const isSafe = /^(https?|[a-z][a-z0-9+-]*\.[a-z0-9.+-]+):$/.test(protocol)
  return { ...others, clientName: displayName(clientName), ...(isSafe && { href }) }
}

export function initialOf(name: string): string {
  const [first] = letters.segment(name)
  return first?.segment.toUpperCase() ?? ''
}

const letters = new Intl.Segmenter()

/** At most 64 characters, without line breaks and control characters, which could forge the text around it. */
export function displayName(name: string): string {
  // oxlint-disable-next-line typescript/no-misused-spread -- code points are what is counted
  const shown = [...name.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Z}]+/gu, ' ').trim()]
  return shown.length > 64 ? `${shown.slice(0, 63).join('')}…` : shown.join('')
}

// Mail programs turn `evil.example` into a link. An invisible word joiner stops them, after each dot, each colon, and each character that
// can replace these in an address.
export function unlinkable(name: string): string {
  return name
    .replace(/[:\uFE55\uFF1A]?[\\/\uFF0F\uFF3C]{2,}/g, ' ')
    .replace(/[.:\u2024\u3002\uFE52\uFE55\uFF0E\uFF1A\uFF61](?=\S)/g, '$&\u2060')
}

const FROM_THE_RIGHT =
  /[\p{Script=Adlam}\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Nko}\p{Script=Syriac}\p{Script=Thaana}]/u

/** A name in the other direction must not move the text around it. */
export function isolated(name: string, dir: 'ltr' | 'rtl'): string {
  const mayTurn = dir === 'rtl' || FROM_THE_RIGHT.test(name)
  return name && mayTurn ? `\u2068${name}\u2069` : name
}

export function nameText({ dir, isOfMail }: Catalog, name: string): string {
  const shown = displayName(name)
  return isolated(isOfMail ? unlinkable(shown) : shown, dir)
}

export function appsText(catalog: Catalog, apps: SignedOutApps | undefined) {
  const { t, lang } = catalog
  function sentence(key: string, { names, more }: ShownApps) {
    const shown = names.map((name) => nameText(catalog, name))
    const all = more > 0 ? [...shown, t('apps.more', { count: numberText(more, lang) })] : shown
    return all.length > 0 ? t(key, { apps: lists(lang).format(all) }) : ''
  }
  return {
    notified: apps ? sentence('apps.notified', apps.notified) : '',
    notNotified: apps ? sentence('apps.notNotified', apps.notNotified) : '',
  }
}

interface ShownLogin {
  username?: string | undefined
  clientName?: string | undefined
  /** When the login began, if it still waits. */
  at?: Date | undefined
}

/** What stands beside the code of a login, one fact in a line. */
export function factsOf(catalog: Catalog, { username = '', clientName, at }: ShownLogin): string[] {
  const { t, lang } = catalog
  return [
    t('login.account', { account: nameText(catalog, username) }),
    ...(clientName ? [t('login.app', { app: nameText(catalog, clientName) })] : []),
    ...(at ? [t('login.at', { at: timeText(at, lang) })] : []),
  ]
}
