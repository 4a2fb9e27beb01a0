const MIN_LAST_COLUMN = 20
const GAP = '  '

/** Columns that fit, or else one line for each cell. Only the last column is wrapped, between words, and only at a terminal. */
export function table(head: string[], rows: string[][], columns: number | undefined): string {
  const widths = head.map((title, index) =>
    Math.max(...[title, ...rows.map((row) => row[index] ?? '')].map(widthOf)),
  )
  const before = widths.slice(0, -1).reduce((sum, width) => sum + width + GAP.length, 0)
  const room = columns === undefined ? Infinity : columns - before
  if (room < Math.min(MIN_LAST_COLUMN, widths.at(-1) ?? 0)) return records(head, rows)
  const indent = ' '.repeat(before)
  const lineOf = (row: string[]) => {
    const cells = row.slice(0, -1).map((cell, index) => padded(cell, widths[index] ?? 0) + GAP)
    const [first = '', ...others] = wrapped(row.at(-1) ?? '', room)
    const lines = [cells.join('') + first, ...others.map((line) => indent + line)]
    return lines.map((line) => line.trimEnd()).join('\n')
  }
  return [head, ...rows].map(lineOf).join('\n')
}

function records(head: string[], rows: string[][]): string {
  const record = (row: string[]) =>
    linesOf(...row.map((cell, index) => cell !== '' && `${head[index]}: ${cell}`))
  return rows.map(record).join('\n\n')
}

/** Each text on its own line, without those that are `false` or `undefined`. */
export function linesOf(...lines: (string | false | undefined)[]): string {
  return lines.filter((line) => line !== false && line !== undefined).join('\n')
}

export type Fact = [name: string, value: string | undefined]

/** The name of a field for people. */
export function labelOf(field: string): string {
  return field.replace(/_(id|at)$/, '').replaceAll('_', ' ')
}

/** A fact for each field. Several values are joined; an empty field has the value `undefined`. */
export function factsOf(fields: object): Fact[] {
  return Object.entries(fields).map(([name, value]) => [
    labelOf(name),
    [value].flat().join(', ') || undefined,
  ])
}

/** A line for each fact that has a value. */
export function factLines(facts: Fact[], indent = ''): string[] {
  const width = Math.max(...facts.map(([name]) => name.length))
  return facts.flatMap(([name, value]) =>
    value === undefined ? [] : `${indent}${name.padEnd(width)}  ${value}`,
  )
}

/** The same text, with too long lines, and too long words, broken into several lines. All but the first of these are indented. */
export function fitted(text: string, columns = Infinity): string {
  return text
    .split('\n')
    .flatMap((line) => (widthOf(line) <= columns ? [line] : hanging(line, columns)))
    .join('\n')
}

function hanging(line: string, columns: number): string[] {
  const text = line.trimStart()
  const indent = ' '.repeat(line.length - text.length)
  const room = columns - indent.length - 2
  const words = text.split(' ').flatMap((word) => piecesOf(word, room))
  const [first = '', ...others] = wrapped(words.join(' '), room)
  return [indent + first, ...others.map((other) => `${indent}  ${other.trimStart()}`)]
}

/** Lines of at most `room`, unless one word is longer. */
function wrapped(text: string, room: number): string[] {
  const lines: string[] = []
  let line: string | undefined
  for (const word of text.split(' ')) {
    const longer: string = line === undefined ? word : `${line} ${word}`
    if (line !== undefined && widthOf(longer) > room) {
      lines.push(line)
      line = word
    } else line = longer
  }
  return [...lines, line ?? '']
}

/** A colour, or a character. */
const PIECE = /\p{Cc}\[\d+m|./gsu

function piecesOf(word: string, room: number): string[] {
  if (widthOf(word) <= room) return [word]
  const pieces = ['']
  for (const [piece] of word.matchAll(PIECE)) {
    const longer = pieces.at(-1) + piece
    if (widthOf(longer) > room) pieces.push(piece)
    else pieces[pieces.length - 1] = longer
  }
  return pieces
}

const padded = (cell: string, width: number) => cell + ' '.repeat(width - widthOf(cell))

const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u

function widthOf(text: string): number {
  let width = 0
  for (const [character] of text.matchAll(PIECE)) {
    width += character.length > 2 || /\p{M}/u.test(character) ? 0 : WIDE.test(character) ? 2 : 1
  }
  return width
}
