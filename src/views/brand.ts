import { must } from '../errors.ts'
import { displayName } from './formats.ts'

/** The brand on every page and in every mail. Parts that you leave out leave no gap; `logo` and `homeUrl` need `name`. */
export interface Brand {
  /** Such as `Acme`, at most 64 characters. Every page title ends with it. */
  name?: string | undefined
  /**
   * An image on the origin of `baseUrl`: its address, or its path with a slash in front. It needs `name`. On pages it is 40 pixels high and
   * wide, and also the icon of the browser tab. In mails it is 40 pixels high. Mails show only .png, .jpg, .jpeg, .gif and .webp, because
   * mail programs show only these.
   */
  logo?: string | undefined
  /** `#rrggbb`, for buttons and links. It is made darker, or lighter in dark mode, until the text is readable (WCAG AA). */
  colour?: string | undefined
  /** Name and logo link to it: http or https. It needs `name`. */
  homeUrl?: string | undefined
  /** "Back to sign-in" on every page: http or https. */
  signInUrl?: string | undefined
  /** "Help" on every page and in every mail: http, https or mailto. */
  supportUrl?: string | undefined
}

const IMAGE_PATH = /^\/(?!\/)[^\s\\]*$/

/** Returns the brand with an absolute `logo`. @throws TypeError that names what is not valid. */
export function checkBrand(brand: Brand | undefined, baseUrl: URL): Brand {
  if (brand === undefined) return {}
  must(typeof brand === 'object' && brand, 'brand must be an object')
  const { name, logo, colour, homeUrl, signInUrl, supportUrl, ...others } = brand
  const [other] = Object.keys(others)
  must(
    other === undefined,
    `brand.${other} is unknown. Known: name, logo, colour, homeUrl, signInUrl, supportUrl`,
  )
  const isNamed = name !== undefined
  const isLine = typeof name === 'string' && name && name === displayName(name)
  must(!isNamed || isLine, 'brand.name must be one line of 1 to 64 characters')
  const needsName = logo !== undefined || homeUrl !== undefined
  must(isNamed || !needsName, 'brand.name must be set if brand.logo or brand.homeUrl is')
  const isColour = typeof colour === 'string' && /^#[\da-f]{6}$/i.test(colour)
  must(colour === undefined || isColour, 'brand.colour must be #rrggbb')
  checkAddress('homeUrl', homeUrl)
  checkAddress('signInUrl', signInUrl)
  checkAddress('supportUrl', supportUrl, 'mailto:')
  return { ...brand, ...(logo !== undefined && { logo: logoOf(logo, baseUrl) }) }
}

function checkAddress(name: keyof Brand, address: string | undefined, other?: 'mailto:'): void {
  if (address === undefined) return
  const isOneWord = typeof address === 'string' && !/[\s\p{C}]/u.test(address)
  const protocol = isOneWord && URL.canParse(address) ? new URL(address).protocol : ''
  const allowed = other ? 'http, https or mailto' : 'http or https'
  must(
    protocol === 'https:' || protocol === 'http:' || (other && protocol === other),
    `brand.${name} must be an absolute ${allowed} address`,
  )
}

// Our pages load nothing from other origins (decision 0016).
function logoOf(logo: string, { origin }: URL): string {
  const isAddress = typeof logo === 'string' && (IMAGE_PATH.test(logo) || URL.canParse(logo))
  const url = isAddress ? new URL(logo, origin) : undefined
  must(
    url?.origin === origin && /^https?:/.test(url.href) && !url.pathname.startsWith('//'),
    'brand.logo must be on the origin of baseUrl, or a path on it',
  )
  return url.href
}

export interface ShownBrand extends Omit<Brand, 'colour'> {
  /** The accent colour in mails. */
  accent?: string | undefined
  /** An absolute address. `undefined`: mail programs would not show it. `logo` is a path, so that it works on each host name of a page. */
  mailLogo?: string | undefined
}

export function shownBrand({ logo, colour, ...brand }: Brand): ShownBrand {
  const url = logo === undefined ? undefined : new URL(logo)
  const isForMails = url && /\.(png|jpe?g|gif|webp)$/i.test(url.pathname)
  return {
    ...brand,
    accent: colour && accentOf(colour, SCHEMES.light).accent,
    logo: url && url.pathname + url.search,
    mailLogo: isForMails ? url.href : undefined,
  }
}

// `accent` is for buttons and links, and `strong` for the same under the pointer. `on` is for the text on both, and `soft` for a background
// that stands out a little.
type Accent = Record<'accent' | 'strong' | 'on' | 'soft', string>

type Scheme = (typeof SCHEMES)['light' | 'dark']

/** Backgrounds, as in `views/account-flows.css`. `towards` makes a colour easier to read. `tint` is the part of the accent in `soft`. */
export const SCHEMES = {
  light: { card: '#ffffff', page: '#f4f5f8', on: '#ffffff', towards: '#000000', tint: 0.08 },
  dark: { card: '#171b22', page: '#0e1116', on: '#0c1220', towards: '#ffffff', tint: 0.12 },
}

/** The least contrast of text (WCAG 2.2, 1.4.3). */
const READABLE = 4.5
/** How much darker or lighter a button is under the pointer. */
const HOVER = 0.15

/** Makes the colour darker on light, and lighter on dark, until every text is readable. */
export function accentOf(colour: string, { card, page, on, towards, tint }: Scheme): Accent {
  const isReadable = ({ accent, strong, soft }: Accent) =>
    [card, page, soft, on].every((other) => contrast(accent, other) >= READABLE) &&
    contrast(strong, on) >= READABLE
  for (let percent = 0; ; percent += 1) {
    const accent = mixed(towards, colour, percent / 100)
    const strong = mixed(towards, accent, HOVER)
    const made = { accent, strong, on, soft: mixed(accent, card, tint) }
    if (isReadable(made) || percent === 100) return made
  }
}

export function accentCss(colour: string | undefined): string | undefined {
  if (colour === undefined) return undefined
  const variables = ({ accent, strong, on, soft }: Accent) =>
    `:root { --accent: ${accent}; --accent-strong: ${strong}; --on-accent: ${on}; --soft: ${soft} }`
  const light = variables(accentOf(colour, SCHEMES.light))
  const dark = variables(accentOf(colour, SCHEMES.dark))
  return `${light}\n@media (prefers-color-scheme: dark) { ${dark} }`
}

/** The contrast of two colours by WCAG 2, from 1 to 21. */
export function contrast(one: string, other: string): number {
  const [darker = 0, lighter = 0] = [luminance(one), luminance(other)].toSorted((a, b) => a - b)
  return (lighter + 0.05) / (darker + 0.05)
}

function luminance(colour: string): number {
  const [red, green, blue] = rgbOf(colour).map((value) => {
    const part = value / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * (red ?? 0) + 0.7152 * (green ?? 0) + 0.0722 * (blue ?? 0)
}

function rgbOf(colour: string): number[] {
  return [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16))
}

/** `part` of the first, from 0 to 1, and the rest of the second. */
function mixed(one: string, other: string, part: number): string {
  const others = rgbOf(other)
  const rgb = rgbOf(one).map((value, at) => value * part + (others[at] ?? 0) * (1 - part))
  return `#${rgb.map((value) => Math.round(value).toString(16).padStart(2, '0')).join('')}`
}
