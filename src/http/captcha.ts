import { isInTheClear } from '../settings/loopback-host.ts'

const DIRECTIVES = [
  'script-src',
  'style-src',
  'img-src',
  'connect-src',
  'frame-src',
  'worker-src',
] as const

type Directive = (typeof DIRECTIVES)[number]

/** By directive of the Content-Security-Policy, as vendors list them. */
export type CaptchaSources = { readonly [D in Directive]?: readonly string[] }

/** A widget that tells people from robots. It is shown in each form that `beforeForgotPassword` is asked about, and nowhere else. */
export interface Captcha {
  /**
   * The tags of the widget, as its vendor shows them. They are put above the button of the form as they are. A script needs a `src`:
   * scripts without one, and `style` and `onclick` attributes, do nothing.
   */
  html: string
  /**
   * What the widget loads from elsewhere, such as `{ 'script-src': ['https://challenges.cloudflare.com'] }`. The policy of the pages
   * that show it has these sources besides its own. Your own origin needs none, but for frames.
   */
  sources?: CaptchaSources | undefined
}

/** What is no address, and where it may be. */
const KEYWORDS: Readonly<Record<string, readonly Directive[]>> = {
  "'self'": DIRECTIVES,
  // Compiles WebAssembly, and turns no text into a script: for proofs of work.
  "'wasm-unsafe-eval'": ['script-src'],
  'blob:': ['worker-src'],
  'data:': ['img-src'],
}

/** As CSP writes it: a host, or all hosts below a domain that is no top-level one; a port, a path. */
const ADDRESS =
  /^https?:\/\/(?:\*\.[a-z\d-]+\.)?[a-z\d-]+(?:\.[a-z\d-]+)*(?::\d{1,5})?(?:\/[\w.~/-]*)?$/i

/**
 * @param weak - is told of an address that others can change on its way.
 * @throws TypeError naming what is not acceptable.
 */
export function checkCaptcha(
  captcha: Captcha | undefined,
  weak: (problem: string) => void,
): Captcha | undefined {
  if (captcha === undefined) return undefined
  if (typeof captcha !== 'object' || captcha === null) {
    throw new TypeError('captcha must be an object')
  }
  const { html, sources = {}, ...others } = captcha
  const [other] = Object.keys(others)
  if (other !== undefined) throw new TypeError(`captcha.${other} is not known: html, sources are`)
  if (typeof html !== 'string' || html.trim() === '') {
    throw new TypeError('captcha.html must be the tags of the widget')
  }
  return { html, sources: checkSources(sources, weak) }
}

function checkSources(sources: CaptchaSources, weak: (problem: string) => void): CaptchaSources {
  if (typeof sources !== 'object' || sources === null) {
    throw new TypeError('captcha.sources must be an object')
  }
  const checked = Object.entries(sources).map(([name, list]) => {
    const directive = DIRECTIVES.find((each) => each === name)
    const option = `captcha.sources[${JSON.stringify(name)}]`
    if (!directive) throw new TypeError(`${option} is not known: ${DIRECTIVES.join(', ')} are`)
    if (!Array.isArray(list)) throw new TypeError(`${option} must be a list of sources`)
    for (const source of list) checkSource(option, directive, source, weak)
    return [directive, [...list]] as const
  })
  return Object.fromEntries(checked)
}

function checkSource(
  option: string,
  directive: Directive,
  source: unknown,
  weak: (problem: string) => void,
): void {
  if (typeof source === 'string') {
    if (Object.hasOwn(KEYWORDS, source) && KEYWORDS[source]?.includes(directive)) return
    const url = addressOf(source)
    if (url && isInTheClear(url)) {
      return weak(`${option} has ${source}: others can change what comes over http`)
    }
    if (url) return
  }
  throw new TypeError(`${option} cannot have ${JSON.stringify(source)}`)
}

function addressOf(source: string): URL | undefined {
  const address = source.replace('*.', '')
  return ADDRESS.test(source) && URL.canParse(address) ? new URL(address) : undefined
}
