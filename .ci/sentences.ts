/**
 * Tells the sentences of more than 25 words in what people read: the docs, the newest part of the changelog, the English pages and
 * mails, and what stands in comments and quotes in the source. `npm run sentences -- src/settings` looks at one folder.
 *
 * @module
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const READ = ['.', 'docs', 'bench', 'examples', 'src', 'cli', 'views/locales/en.json']
const MAX_WORDS = 25

/** How a sentence begins that may be longer, and why. */
const EXCEPTIONS: Record<string, string> = {}

export interface LongSentence {
  line: number
  words: number
  sentence: string
}

const same = (mark: string) => (text: string) => text.replaceAll(/[^\n]/g, mark)

/** Code is gone or one word, and a link is its text. All stays at its place, so that lines can be told. */
function proseOf(markdown: string): string {
  return markdown
    .replaceAll(/^( *)```[\s\S]*?^\1```$|<!--[\s\S]*?-->|<[a-z/][^>]*>/gm, same(' '))
    .replaceAll(/(?<!`)(`+)(?!`)(?:(?!\n\s*\n)[\s\S])*?[^`]\1(?!`)/g, (code) =>
      'x'.repeat(code.length),
    )
    .replaceAll(/\]\([^)\s]*\)/g, same(' '))
}

/** The end of a sentence, a paragraph, a heading, an item, a cell. */
const ENDS =
  /(?<=[.!?]["'”’)*_\]]*)\s+|\s*\n\s*\n\s*|(?<=^#.*| {2})\n|\n(?=\s*(?:#|[-*] |\d+\. |>|@\w))|\s*(?<!\\)\|\s*| · /gm

/** The sentences of Markdown that are too long. */
export function longSentences(markdown: string): LongSentence[] {
  const prose = proseOf(markdown)
  const ends = [...prose.matchAll(ENDS), { index: prose.length, 0: '' }]
  let from = 0
  return ends.flatMap(({ index, 0: end }) => {
    const words = prose.slice(from, index).match(/\S*[\p{L}\p{N}]\S*/gu)?.length ?? 0
    const sentence = markdown.slice(from, index).replaceAll(/\s+/g, ' ').trim()
    const line = markdown.slice(0, from).split('\n').length
    from = index + end.length
    return words > MAX_WORDS ? [{ line, words, sentence }] : []
  })
}

const QUOTE = /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\[\s\S]|\$\{[^{}]*\}|[^`\\])*`/.source
const TOKEN = new RegExp(
  String.raw`\/\*[\s\S]*?\*\/|\/\/.*(?:\n\s*\/\/.*)*|(?:${QUOTE})(?:\s*\+\s*(?:${QUOTE}))*`,
  'g',
)

/** The long sentences of comments and quoted texts. */
export function longSentencesOfSource(source: string): LongSentence[] {
  return [...source.matchAll(TOKEN)].flatMap(({ index, 0: token }) => {
    const isComment = token.startsWith('/')
    const text = isComment
      ? token
          .replaceAll(/^\s*(?:\/?\*+\/?|\/\/)|\*+\/$/gm, same(' '))
          .replaceAll(/@example[\s\S]*?(?=\n\s*@|$)/g, same(' '))
      : token
          .replaceAll(/\$\{[^{}]*\}/g, same('x'))
          .replaceAll(/['"`]\s*\+\s*['"`]|^['"`]|['"`]$/g, ' ')
          .replaceAll(/\\n|\n/g, '\n\n')
    const before = source.slice(0, index).split('\n').length - 1
    const lineOf = (line: number) => before + (isComment ? line : 1)
    return longSentences(text).map((found) => Object.assign(found, { line: lineOf(found.line) }))
  })
}

function filesBelow(path: string): string[] {
  if (/\.\w+$/.test(path)) return [path]
  const names = readdirSync(join(ROOT, path), { recursive: path !== '.', encoding: 'utf8' })
  return names.map((name) => join(path, name)).filter((name) => /\.(?:md|ts)$/.test(name))
}

function longIn(file: string): LongSentence[] {
  const text = readFileSync(join(ROOT, file), 'utf8')
  if (!file.endsWith('.md')) return longSentencesOfSource(text)
  const newest = file === 'CHANGELOG.md' ? /^[\s\S]*?\n## [\s\S]*?(?=\n## |$(?![\s\S]))/ : /[\s\S]*/
  return longSentences(newest.exec(text)?.[0] ?? '')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const asked = process.argv.slice(2)
  const found = (asked.length === 0 ? READ : asked).flatMap((path) =>
    filesBelow(path).flatMap((file) => longIn(file).map((long) => Object.assign(long, { file }))),
  )
  const allowed = Object.keys(EXCEPTIONS)
  const wrong = found.filter(
    ({ sentence }) => !allowed.some((begins) => sentence.startsWith(begins)),
  )
  for (const { file, line, words, sentence } of wrong) {
    console.error(`${file}:${line}: ${words} words: ${sentence}`)
  }
  if (wrong.length > 0) {
    console.error(`${wrong.length} sentences of more than ${MAX_WORDS} words.`)
    process.exitCode = 1
  }
}
