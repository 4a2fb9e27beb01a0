import type { Catalog } from './locales.ts'
import { eitherOf } from './formats.ts'

// The exact user agents of browsers. Anything else is another program, or a forgery.
const VERSION = String.raw`\d{1,4}(?:\.\d{1,5}){0,3}`
const WEBKIT = String.raw`AppleWebKit/${VERSION} \(KHTML, like Gecko\)`
const CHROMIUM = `${WEBKIT} Chrome/${VERSION}(?: Mobile)? Safari/${VERSION}`
const IOS = String.raw`Mobile/\w{1,10} Safari/${VERSION}`

const BROWSERS: readonly (readonly [string, string])[] = [
  ['Chrome', CHROMIUM],
  ['Chrome', `${WEBKIT} CriOS/${VERSION} ${IOS}`],
  ['Edge', `${CHROMIUM} EdgA?/${VERSION}`],
  ['Edge', `${WEBKIT} Version/${VERSION} EdgiOS/${VERSION} ${IOS}`],
  ['Firefox', `Gecko/${VERSION} Firefox/${VERSION}`],
  ['Firefox', `Gecko/\\d{8} Firefox/${VERSION}`],
  ['Firefox', `${WEBKIT} FxiOS/${VERSION} ${IOS}`],
  ['Opera', `${CHROMIUM} OPR/${VERSION}`],
  ['Safari', `${WEBKIT} Version/${VERSION}(?: Mobile/\\w{1,10})? Safari/${VERSION}`],
  [
    'Samsung Internet',
    `${WEBKIT} SamsungBrowser/${VERSION} Chrome/${VERSION}(?: Mobile)? Safari/${VERSION}`,
  ],
]

// The iPad calls itself a Mac, unless the user asks for mobile pages.
const SYSTEMS: readonly (readonly [readonly string[], RegExp])[] = [
  [['Windows'], /^Windows NT \d/],
  [['macOS', 'iPadOS'], /^Macintosh; Intel Mac OS X /],
  [['iOS'], /^iPhone; CPU iPhone OS /],
  [['iPadOS'], /^iPad; CPU OS /],
  [['ChromeOS'], /^X11; CrOS /],
  [['Linux'], /^X11; (?:\w{1,20}; )?Linux /],
  [['Android'], /^(?:Linux; )?Android \d/],
]

// In our own words, because no sent text is shown. `undefined` unless it is exactly that of a known browser. If it fits two systems, both
// are named. Versions are left out, because browsers do not send the true one.
export function deviceOf(userAgent: string) {
  const [, system = '', rest = ''] = /^Mozilla\/5\.0 \(([^()]{1,120})\) (.+)$/.exec(userAgent) ?? []
  const browser = BROWSERS.find(([, says]) => new RegExp(`^${says}$`).test(rest))
  const systems = SYSTEMS.find(([, says]) => says.test(system))
  // `wv` marks an app that shows a web page.
  if (!browser || !systems || /; wv\b/.test(system)) return undefined
  return { browser: browser[0], systems: systems[0] }
}

/** Such as `Firefox on Linux`. `undefined`: not known for sure. */
export function deviceText({ t, lang }: Catalog, userAgent = ''): string | undefined {
  const device = deviceOf(userAgent)
  return (
    device && t('mail.device', { browser: device.browser, system: eitherOf(device.systems, lang) })
  )
}
