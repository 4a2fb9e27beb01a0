import { readFileSync } from 'node:fs'
import { onOneLine } from './source.ts'

interface Export {
  name: string
  kind: string
  /** The first sentence of its comment. */
  said: string
  /** Of a function: how it is called. */
  call: string
  /** Of a type: how it is declared, without comments, on one line. */
  declared: string
}

/** The functions and other values that an entry of the package exports. */
export function functionsOf(entry: string): string {
  return exportsOf(entry)
    .filter(({ kind }) => !isType(kind))
    .map(({ call, said }) => `- **\`${call}\`**  \n  ${said}`)
    .join('\n')
}

/** A table of the types that an entry of the package exports. */
export function typesOf(entry: string): string {
  const rows = exportsOf(entry)
    .filter(({ kind }) => isType(kind))
    .map(({ name, said }) => `| \`${name}\` | ${said.replaceAll('|', '\\|')} |`)
  return `| type | what it is |\n| --- | --- |\n${rows.join('\n')}`
}

/** All that an entry of the package exports: a line each. */
export function shapesOf(entry: string): string[] {
  return sortedExports(entry).map(({ kind, name, call, declared }) =>
    isType(kind) ? `${kind} ${name} ${declared}` : `${kind} ${call}`,
  )
}

const sortedExports = (entry: string) =>
  exportsOfFile(entry).toSorted((a, b) => a.name.localeCompare(b.name))

function exportsOf(entry: string): Export[] {
  const all = sortedExports(entry)
  const silent = all.filter(({ said }) => said === '')
  if (silent.length > 0) throw new Error(`no comment: ${silent.map(({ name }) => name).join(', ')}`)
  return all
}

function isType(kind: string): boolean {
  return kind === 'type' || kind === 'interface'
}

function exportsOfFile(file: string): Export[] {
  const text = readFileSync(new URL(file, ROOT), 'utf8')
  const passedOn = [...text.matchAll(PASSED_ON)].flatMap(({ groups = {} }) => {
    const { names, path = '' } = groups
    const of = exportsOfFile(new URL(path, new URL(file, ROOT)).href)
    if (names === undefined) return of
    return [...names.matchAll(/\w+(?=,|\s*$)/g)].map(([name]) => {
      const found = of.find((one) => one.name === name)
      if (!found) throw new Error(`${path} exports no ${name}`)
      return found
    })
  })
  return [...passedOn, ...declaredIn(text)]
}

const ROOT = new URL('../../src/', import.meta.url)
const PASSED_ON = /^export (?:type )?(?:\*|\{(?<names>[^}]*)\}) from '(?<path>[^']+)'/gm
const DECLARED =
  /^(?:\/\*\*(?<doc>(?:(?!\*\/)[\s\S])*)\*\/\n)?export (?:async )?(?<kind>function|const|class|interface|type) (?<name>\w+)(?<rest>[\s\S]*?(?:\n\n|\n\}\n|(?![\s\S])))/gm

function declaredIn(text: string): Export[] {
  return [...text.matchAll(DECLARED)].map(
    ({ groups: { doc = '', kind = '', name = '', rest = '' } = {} }) => ({
      name,
      kind,
      said: firstSentence(doc),
      call: kind === 'function' ? name + signature(rest) : name,
      declared: onOneLine(rest.split('\nexport ')[0] ?? ''),
    }),
  )
}

/** Up to the brace that opens the body. */
function signature(rest: string): string {
  const [, whole = ''] = /^([\s\S]*?[^&\s]) \{\n/.exec(rest) ?? []
  const line = whole.replaceAll(/\s*\n\s*/g, ' ')
  return line.replaceAll('( ', '(').replaceAll(', )', ')')
}

function firstSentence(doc: string): string {
  const text = doc.replaceAll(/\s*\n\s*\*? ?/g, ' ').trim()
  return text.replace(/ @.*$/, '').replace(/(?<=[a-z\d)`][.]) .*$/, '')
}
