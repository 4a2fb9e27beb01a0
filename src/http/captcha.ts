import { must, type RefuseWeak } from '../errors.ts'
import { isInTheClear } from '../settings/addresses.ts'

const DIRECTIVES = [
  'script-src',
  'style-src',
  'img-src',
  'connect-src',
  'frame-src',
  'worker-src',
] as const

type Directive = (typeof DIRECTIVES)[number]

export type CaptchaSources = { readonly [D in Directive]?: readonly string[] }

/** A widget against robots. Only the forms that `beforeForgotPassword` is asked about show it. */
export interface Captcha {
  /**
   * The tags of the widget, as its vendor shows them. They are put above the button of the form as they are. A script needs a `src`:
   * scripts without one, and `style` and `onclick` attributes, do nothing.
   */
  html: string
  /**
   * What the widget loads from elsewhere, such as `{ 'script-src': ['https://challenges.cloudflare.com'] }`. The policy of the pages that
   * show it has these sources besides its own. Your own origin needs an entry only for frames.
   */
  sources?: CaptchaSources | undefined
}

const KEYWORDS = new Map<unknown, readonly Directive[]>([
  ["'self'", DIRECTIVES],
  // For proofs of work. It allows WebAssembly to compile, but turns no text into a script.
  ["'wasm-unsafe-eval'", ['script-src']],
  ['blob:', ['worker-src']],
  ['data:', ['img-src']],
])

/** An address as CSP writes it: a host, or all hosts below a domain that is not top-level. A port and a path may follow. */
const ADDRESS =
  /^https?:\/\/(?:\*\.[a-z\d-]+\.)?[a-z\d-]+(?:\.[a-z\d-]+)*(?::\d{1,5})?(?:\/[\w.~/-]*)?$/i

/**
 * @param refuse - is called for an address whose content a stranger on the network can change.
 * @throws TypeError that names what is not acceptable.
 */
export function checkCaptcha(
  captcha: Captcha | undefined,
  refuse: RefuseWeak,
): Captcha | undefined {
  if (captcha === undefined) return undefined
  must(typeof captcha === 'object' && captcha, 'captcha must be an object')
  const { html, sources = {}, ...others } = captcha
  const [other] = Object.keys(others)
  must(other === undefined, `captcha.${other} is not known: html, sources are`)
  must(typeof html === 'string' && html.trim(), 'captcha.html must be the tags of the widget')
  checkSources(sources, refuse)
  return { html, sources: structuredClone(sources) }
}

function checkSources(sources: CaptchaSources, refuse: RefuseWeak): void {
  must(typeof sources === 'object' && sources, 'captcha.sources must be an object')
  for (const [name, list] of Object.entries(sources)) {
    const directive = DIRECTIVES.find((each) => each === name)
    const option = `captcha.sources[${JSON.stringify(name)}]`
    must(directive, `${option} is not known: ${DIRECTIVES.join(', ')} are`)
    must(Array.isArray(list), `${option} must be a list of sources`)
    for (const source of list.filter((each) => !KEYWORDS.get(each)?.includes(directive))) {
      const isSource = typeof source === 'string' && ADDRESS.test(source)
      const address = isSource ? source.replace('*.', '') : ''
      must(URL.canParse(address), `${option} cannot have ${JSON.stringify(source)}`)
      if (isInTheClear(new URL(address)))
        refuse(`${option} has ${source}: others can change what comes over http`)
    }
  }
}
