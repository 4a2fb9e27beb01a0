import { readFileSync } from 'node:fs'

interface Export {
  name: string
  kind: string
  /** The first sentence of its comment. */
  said: string
  /** Of a function: how it is called. */
  call: string
}

/** What an entry of the package exports: its functions, and a table of its types. */
export function exportsOf(entry: string): string {
  const all = exportsOfFile(entry).toSorted((a, b) => a.name.localeCompare(b.name))
  const values = all.filter(({ kind }) => !isType(kind))
  const types = all.filter(({ kind }) => isType(kind))
  const silent = all.filter(({ said }) => said === '')
  if (silent.length > 0) throw new Error(`no comment: ${silent.map(({ name }) => name).join(', ')}`)
  const rows = types.map(({ name, said }) => `| \`${name}\` | ${said.replaceAll('|', '\\|')} |`)
  return [
    values.map(({ call, said }) => `- **\`${call}\`**  \n  ${said}`).join('\n'),
    rows.length === 0 ? '' : `| type | what it is |\n| --- | --- |\n${rows.join('\n')}`,
  ].join('\n\n')
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
