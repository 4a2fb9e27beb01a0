/**
 * What may become of the query of a mailed link, as an arbitrary of fast-check: changes that make it another link.
 *
 * @module
 */
import * as fc from 'fast-check'

export type Pairs = [name: string, value: string][]

/** The parameters that `authorize_sig` covers, and the signature itself (5.4). */
export const SIGNED = [
  'token',
  'client_id',
  'redirect_uri',
  'scope',
  'state',
  'authorize_sig',
] as const

type Change = (pairs: Pairs) => Pairs

const character = fc.oneof(
  fc.constantFrom('\0', ' ', '+', '%', '&', '=', '"', ',', '[', ']', '\u{FEFF}', 'é', 'é', '😀'),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
)
const position = fc.nat()
const name = fc.constantFrom(...SIGNED)

/** Changes, removes or adds one character of one value. */
const oneCharacter = fc
  .tuple(name, position, character, fc.constantFrom(0, 1), fc.boolean())
  .map(([which, at, put, removed, isInserted]): Change =>
    onValue(which, (value) => {
      const points = Array.from(value)
      const index = at % (points.length + 1)
      points.splice(index, removed, ...(isInserted ? [put] : []))
      return points.join('')
    }),
  )

/** A parameter of ours under a name that is not ours: in another case, percent-encoded twice, with a space, or in brackets. */
const misspelled = fc.constantFrom<((which: string) => string)[]>(
  (which) => which.toUpperCase(),
  (which) => `%${which}`,
  (which) => `${which} `,
  (which) => `.${which}`,
  ...['[]', '[0]', '[$ne]', '[__proto__]', '[', '[state]'].map(
    (bracket) => (which: string) => which + bracket,
  ),
)

const misspelling = fc.tuple(name, misspelled).map(
  ([which, misspell]): Change =>
    (pairs) =>
      pairs.map(([each, value]) => [each === which ? misspell(each) : each, value]),
)

/** The same name twice, or misspelled beside, with the same or another value, before or behind the honest one. */
const duplication = fc
  .tuple(name, fc.option(fc.string({ unit: 'binary' })), fc.option(misspelled), fc.boolean())
  .map(([which, value, misspell, isFirst]): Change => (pairs) => {
    const again: Pairs = [[misspell?.(which) ?? which, value ?? valueOf(pairs, which)]]
    return isFirst ? [...again, ...pairs] : [...pairs, ...again]
  })

/** Moves characters, or a whole `&name=value`, over the boundary between two neighbours. */
const shiftedBoundary = fc
  .tuple(
    fc.nat(SIGNED.length - 2),
    fc.integer({ min: 1, max: 60 }),
    fc.constantFrom('left', 'right', 'swallow', 'swap'),
  )
  .map(([index, count, how]): Change => (pairs) => {
    const [left, right] = [SIGNED[index] ?? 'token', SIGNED[index + 1] ?? 'client_id']
    const [a, b] = [valueOf(pairs, left), valueOf(pairs, right)]
    const set = (x: string, y: string | undefined): Pairs =>
      pairs.flatMap(([each, value]): Pairs => {
        if (each === left) return [[each, x.toWellFormed()]]
        if (each !== right) return [[each, value]]
        // Half of a character cannot be written in a query.
        return y === undefined ? [] : [[each, y.toWellFormed()]]
      })
    if (how === 'left') return set(a + b.slice(0, count), b.slice(count))
    if (how === 'right') return set(a.slice(0, -count), a.slice(-count) + b)
    return how === 'swap' ? set(b, a) : set(`${a}&${right}=${b}`, undefined)
  })

/** Each makes another link of it, except where it happens to change nothing: see `isSameLink`. */
export const linkChange: fc.Arbitrary<Change> = fc.oneof(
  oneCharacter,
  duplication,
  misspelling,
  shiftedBoundary,
)

/**
 * Whether a query holds each signed parameter once, with the same value, and none of them in brackets. Line breaks, and what is
 * no base64url in the token and the signature, come from mail programs and are no difference.
 */
export function isSameLink(a: Pairs, b: Pairs): boolean {
  const sorted = (pairs: Pairs) =>
    JSON.stringify(
      pairs
        .filter(([each]) => SIGNED.some((ours) => each === ours || each.startsWith(`${ours}[`)))
        .map(([each, value]) => JSON.stringify([each, asMailed(each, value)]))
        .toSorted((x, y) => (x < y ? -1 : 1)),
    )
  return sorted(a) === sorted(b)
}

function asMailed(name: string, value: string): string {
  const isBase64url = name === 'token' || name === 'authorize_sig'
  return value.replaceAll(isBase64url ? /[^A-Za-z0-9_-]/g : /[\r\n\t]+ */g, '')
}

function onValue(which: string, change: (value: string) => string): Change {
  return (pairs) => pairs.map(([each, value]) => [each, each === which ? change(value) : value])
}

export function valueOf(pairs: Pairs, which: string): string {
  return pairs.find(([each]) => each === which)?.[1] ?? ''
}
