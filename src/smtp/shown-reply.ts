import type { SmtpReply } from './dialogue.ts'

const MAX_CHARS = 500
const HIDDEN = '…'
/** Of a longer secret, so many characters in a row are as secret as the whole. */
const TELLING_CHARS = 8
const MIN_CODE_CHARS = 4
/** A server may have wrapped one encoding into another. */
const UNWRAPPINGS = 2

/** Makes what a server said fit to be shown: printable, short, and nothing in it that is secret. */
export interface ReplyFilter {
  reply(reply: SmtpReply): string
  /** Any other text of the server. */
  text(text: string): string
  /** From now on this is secret too. */
  alsoHide(secret: string): void
}

/**
 * Text that holds a secret, or half of one, in whatever guise, is hidden as a whole but for the codes of its reply: a gap in the
 * middle of known words would tell what was there.
 */
export function replyFilter({
  username = '',
  password = '',
}: {
  username?: string
  password?: string
}): ReplyFilter {
  const telling = new Map<number, Set<string>>()
  const hide = (secret: string) => {
    for (const needle of [fold(secret), ...inCode([lettersOf(fold(secret))])]) {
      const size = tellingSize(needle)
      const known = telling.get(size) ?? new Set()
      for (const part of windows(needle, size)) telling.set(size, known.add(part))
    }
  }
  if (password) hide(password)
  const pair = password ? [password, `\0${username}\0${password}`] : []
  const plain = [Buffer.from(password).toString('hex'), encodeURIComponent(password)]
  for (const code of inCode([...plain, ...[username, ...pair].flatMap(base64)])) hide(code)

  const isSecret = (text: string) =>
    views(text).some((view) =>
      [...telling].some(([size, parts]) => windows(view, size).some((part) => parts.has(part))),
    )

  const text = (said: string) => {
    const clean = printable(said)
    return isSecret(clean) ? HIDDEN : clean
  }

  return {
    text,

    reply({ code, lines }) {
      const clean = printable(lines.join(' '))
      const enhanced = /^[245]\.\d{1,3}\.\d{1,3}(?!\S)/.exec(clean)?.[0]
      if (!isSecret(clean)) return `${code} ${clean}`.trim().slice(0, MAX_CHARS)
      return enhanced !== undefined && !isSecret(enhanced)
        ? `${code} ${enhanced} ${HIDDEN}`
        : `${code} ${HIDDEN}`
    },

    alsoHide: hide,
  }
}

function printable(said: string): string {
  return said
    .slice(0, 4 * MAX_CHARS)
    .replaceAll(/[\p{Cc}\p{Z}]+/gu, ' ')
    .replaceAll(/\p{C}/gu, '')
    .trim()
    .slice(0, MAX_CHARS)
}

/** Without those that any text holds by chance. */
function inCode(codes: string[]): string[] {
  return codes.filter(({ length }) => length >= MIN_CODE_CHARS)
}

function tellingSize({ length }: string): number {
  return length < 6 ? length : Math.min(Math.ceil(length / 2), TELLING_CHARS)
}

function windows(text: string, size: number): string[] {
  const count = Math.max(text.length - size + 1, 0)
  return Array.from({ length: count }, (_, at) => text.slice(at, at + size))
}

/** Without padding, and also as it looks in the middle of something longer. */
function base64(secret: string): string[] {
  return [0, 1, 2].map((before) => {
    const shifted = Buffer.concat([Buffer.alloc(before), Buffer.from(secret)]).toString('base64')
    return shifted.slice(before === 0 ? 0 : before + 1).replaceAll('=', '')
  })
}

/** The text in every guise that is looked through. */
function views(text: string): string[] {
  let unwrapped = [text]
  const all = new Set(unwrapped)
  for (let turn = 0; turn < UNWRAPPINGS; turn += 1) {
    unwrapped = unwrapped.flatMap((each) => UNWRAP.flatMap((unwrap) => unwrap(each)))
    for (const each of unwrapped) all.add(each)
  }
  return [...new Set([...all].flatMap(spellings))]
}

function spellings(text: string): string[] {
  const folded = fold(text)
  const backwards = Array.from(folded).toReversed().join('')
  return [folded, lettersOf(folded), backwards, lettersOf(backwards)]
}

const UNWRAP: ((text: string) => string[])[] = [
  (text) => [text.replaceAll(/(?:%|=|\\x)([0-9a-f]{2})/gi, (_, hex: string) => charOf(hex, 16))],
  (text) => [
    text
      .replaceAll(/(?:&#x|\\u\{?)([0-9a-f]{2,6})[;}]?/gi, (_, hex: string) => charOf(hex, 16))
      .replaceAll(/&#(\d{1,7});?/g, (_, decimal: string) => charOf(decimal, 10)),
  ],
  (text) => [
    text.replaceAll(/[0-9a-f]{2}(?:[ :.-]?[0-9a-f]{2})+/gi, (run) =>
      Buffer.from(run.replaceAll(/[^0-9a-f]/gi, ''), 'hex').toString(),
    ),
  ],
  (text) => [
    text.replaceAll(/[A-Za-z0-9+/_-]{6,}/g, (run) => Buffer.from(run, 'base64').toString()),
  ],
]

function charOf(digits: string, radix: number): string {
  const point = Number.parseInt(digits, radix)
  return point <= 0x10ffff ? String.fromCodePoint(point) : ''
}

function fold(text: string): string {
  return text.normalize('NFKD').toLowerCase()
}

function lettersOf(text: string): string {
  return text.replaceAll(/[^\p{L}\p{N}]/gu, '')
}
