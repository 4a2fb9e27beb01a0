/** The events in docs/reference.md, out of their table in src/contract/. */
import { example, onOneLine, said, sourceOf } from './source.ts'

const TABLE = /^const AUDIT_EVENTS = \{$/

/** Each type by itself: when it happens, what it tells, its reasons, and a listener. */
export function eventSections(): string {
  return rows()
    .map(({ doc, type, held }) => {
      const forms = formsOf(held).map((form) => form.replaceAll(' | undefined', ''))
      const reasons = [...new Set(forms.flatMap(reasonsOf))]
      return [
        `### ${type}`,
        [...new Set([doc, ...commentsOf(held)])].map((each) => said(each).trim()).join(' '),
        `It tells ${forms.map((form) => `\`${form}\``).join(', or ')}.`,
        reasons.length > 0 &&
          `Its reasons: ${reasons.map((reason) => `\`${reason}\``).join(' · ')}`,
        example(listenerOf(type, forms)),
      ]
        .filter(Boolean)
        .join('\n\n')
    })
    .join('\n\n')
}

/** Each type with the fields of its forms: a line each. */
export const eventShapes = (): string[] =>
  rows().map(({ type, held }) => `${type}: ${formsOf(held).join(' | ')}`)

function rows() {
  const [, table = ''] = /^const AUDIT_EVENTS = \{\n([^]*?)^\}$/m.exec(sourceOf(TABLE)) ?? []
  const row =
    /(?: {2}\/\*\*(?<doc>[^]*?)\*\/\n)? {2}(?<type>\w+): \{\} as Holds<(?<fields>[^]*?)>,\n/g
  return [...table.matchAll(row)].map(({ groups: { doc = '', type = '', fields = '' } = {} }) => {
    return { doc, type, held: onOneLine(fields) }
  })
}

/** An example that uses the fields that are texts. */
function listenerOf(type: string, forms: string[]): string {
  const texts = ['accountId', 'clientId', 'reason'].filter((name) =>
    forms.some((form) => new RegExp(String.raw`[{;] ${name}\??:`).test(form)),
  )
  const names = (texts.length > 0 ? texts : ['id']).join(', ')
  return `flows.events.on('${type}', ({ ${names} }) => note(${names}))`
}

/** The forms of what an event holds, each as one `{ … }` with the members of the types that it names. */
function formsOf(fields: string): string[] {
  const [form = '', ...others] = apart(fields, '|')
  if (others.length > 0) return [form, ...others].flatMap(formsOf)
  if (form.startsWith('(')) return formsOf(form.slice(1, -1))
  if (/^\w+$/.test(form)) return formsOf(declared(form))
  const parts = apart(form, '&')
  if (parts.length < 2) return [form]
  const members = parts.flatMap(formsOf).map((part) => part.replace(/^\{ (?<members>.*) \}$/, '$1'))
  return [`{ ${members.join('; ')} }`]
}

/** The comments on the types that an event is made of. */
function commentsOf(fields: string): string[] {
  return apart(fields, '|&').flatMap((part) => {
    if (part.startsWith('(')) return commentsOf(part.slice(1, -1))
    if (!/^\w+$/.test(part)) return []
    const [before = ''] = sourceOf(TABLE).split(new RegExp(`^(?:type|interface) ${part}\\b`, 'm'))
    const { comment = '' } =
      /\n\/\*\*(?<comment>(?:(?!\*\/)[^])*)\*\/\n$/.exec(before)?.groups ?? {}
    return [comment, ...commentsOf(declared(part))]
  })
}

/** Splits a text at these signs where no bracket is open. */
function apart(text: string, signs: string): string[] {
  const parts = ['']
  let depth = 0
  for (const sign of text) {
    if ('({<'.includes(sign)) depth += 1
    if (')}>'.includes(sign)) depth -= 1
    if (depth === 0 && signs.includes(sign)) parts.push('')
    else parts.push(`${parts.pop()}${sign}`)
  }
  return parts.map((part) => part.trim()).filter((part) => part !== '')
}

function reasonsOf(fields: string): string[] {
  const { reasons = '' } = /reason\??: (?<reasons>[^;}]*)/.exec(fields)?.groups ?? {}
  return reasonsIn(reasons)
}

/** All literals of a union, and of those that it names. */
function reasonsIn(union: string): string[] {
  return [...union.matchAll(/'(?<literal>\w+)'|(?<name>\b[A-Z]\w*)/g)].flatMap(
    ({ groups = {} }) => groups['literal'] ?? reasonsIn(declared(groups['name'] ?? '')),
  )
}

/** What stands behind the name of a type. */
function declared(name: string): string {
  const start = new RegExp(String.raw`^(?:export )?(?:type|interface) ${name}(?: =| (?=\{))`, 'm')
  const file = start.test(sourceOf(TABLE)) ? sourceOf(TABLE) : sourceOf(start)
  const [, text = ''] = file.split(start)
  return onOneLine(text.split('\n\n')[0] ?? '')
}
