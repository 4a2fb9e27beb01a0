/** Reads types and their comments out of the source. A type is found by its name, whatever file has it. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const SRC = fileURLToPath(new URL('../../src/', import.meta.url))

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => [file, readFileSync(join(SRC, file), 'utf8')] as const)

/** The one file below a folder of src/ that has a line with this beginning. */
export function sourceOf(start: RegExp, folder = ''): string {
  const lines = new RegExp(start, 'm')
  const found = files.filter(([file, text]) => file.startsWith(folder) && lines.test(text))
  const [[, text] = []] = found
  if (text === undefined || found.length > 1) throw new Error(`${found.length} files have ${start}`)
  return text
}

/** A type as it is declared, up to the next empty line. */
export function type(name: string, folder = ''): string {
  const start = new RegExp(`^export type ${name} =`, 'm')
  const text = sourceOf(start, folder)
  const from = text.search(start)
  return example(text.slice(from, text.indexOf('\n\n', from)))
}

export function example(code: string): string {
  return `\`\`\`ts\n${code.trim()}\n\`\`\``
}

const MEMBER =
  /^ {2}(?:\/\*\*(?<doc>[\s\S]*?)\*\/\n {2})?(?<name>\w+)(?<rest>\??[(:][\s\S]*?)(?=\n {2}(?:\/\*\*|\w)|\n$)/gm

/** The members of an interface: how each is declared, on one line, and its comment. */
export function declaredMembers(name: string, folder = '') {
  const declared = String.raw`^(?:export )?interface ${name}\b[^{]*\{\n`
  const text = sourceOf(new RegExp(declared), folder)
  const [, members = ''] = new RegExp(`${declared}([\\s\\S]*?\\n)\\}`, 'm').exec(text) ?? []
  return [...members.matchAll(MEMBER)].map(
    ({ groups: { name = '', rest = '', doc = '' } = {} }) => {
      const signature = `${name}${rest}`.replaceAll(/\s+/g, ' ')
      return { name, doc, declared: signature.replaceAll('( ', '(').replaceAll(', )', ')') }
    },
  )
}

/** The same as items of a list. */
export const membersOf = (name: string, folder?: string): Map<string, string> =>
  new Map(
    declaredMembers(name, folder).map(({ name, doc, declared }) => [
      name,
      `- **\`${declared}\`**${said(doc)}`,
    ]),
  )

export function list(name: string, folder = ''): string {
  return [...membersOf(name, folder).values()].join('\n')
}

/** What a comment says: its paragraphs below an item of a list. */
export function said(comment: string): string {
  const text = comment
    .split(/\n\s*\*\s*\n|\n\s*\*\s*(?=@)/)
    .map((paragraph) => paragraph.replaceAll(/(?:^|\s*\n)\s*\*? ?/g, ' ').trim())
    .join('\n\n  ')
    .replaceAll('@returns ', 'Returns ')
    .replaceAll('@throws ', 'Throws ')
    .replaceAll(/@param (?<name>\w+) - /g, '`$<name>`: ')
    .replaceAll(/`docs\/(?<page>[\w-]+\.md)`/g, '[$<page>]($<page>)')
    .trim()
  return text === '' ? '' : `  \n  ${text}`
}

/** Types without comments, with a semicolon between members. */
export function onOneLine(types: string): string {
  return types
    .replaceAll(/\/\*\*[^]*?\*\/|\/\/.*/g, '')
    .replaceAll(/(?<=[\w'}])\n\s*(?=\w+\??:)/g, '; ')
    .replaceAll(/\s+/g, ' ')
    .trim()
}
