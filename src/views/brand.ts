import { must } from '../errors.ts'
import { accentOf, SCHEMES } from './accent.ts'
import { displayName } from './wording.ts'

/** The brand on every page and in every mail. Parts that you leave out leave no gap; `logo` and `homeUrl` need `name`. */
export interface Brand {
  /** Such as `Acme`, at most 64 characters. Every page title ends with it. */
  name?: string | undefined
  /**
   * An image on the origin of `baseUrl`: its address, or its path with a slash in front. It needs `name`. On pages it is 40
   * pixels high and wide, and also the icon of the browser tab. In mails it is 40 pixels high. Mails show only .png, .jpg,
   * .jpeg, .gif and .webp, because mail programs show only these.
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

/** The same with an absolute `logo`. @throws TypeError that names what is not valid. */
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

/** As templates use it. */
export interface ShownBrand extends Omit<Brand, 'colour'> {
  /** The accent colour in mails. */
  accent?: string | undefined
  /** Absolute. `undefined`: mail programs would not show it. `logo` is a path, so that it works on each host name of a page. */
  mailLogo?: string | undefined
}

/** @param brand - checked. */
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
