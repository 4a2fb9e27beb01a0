/** HTML that is safe to send. */
export interface Html {
  readonly html: string
}

type Value = string | number | Html | readonly Html[] | undefined

/** Escapes every value that is no HTML itself; `undefined` leaves nothing. */
export function html(parts: TemplateStringsArray, ...values: Value[]): Html {
  return { html: String.raw({ raw: parts }, ...values.map(escape)) }
}

/** Only for HTML that somebody else made safe, such as a form of the provider. */
export function trusted(text: string): Html {
  return { html: text }
}

/** What the provider or a library says, in whatever language the page is. */
export function inEnglish(text: string): Html {
  return html`<p lang="en" dir="ltr">${text}</p>`
}

/** A name that somebody else chose, in one line, without characters that change the direction, and not too long. */
export function displayName(name: string): string {
  return [...name.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Z}]+/gu, ' ').trim()].slice(0, 64).join('')
}

function escape(value: Value): string {
  if (value === undefined) return ''
  if (typeof value !== 'object')
    return String(value).replace(/[&<>"']/g, (it) => ENTITIES[it] ?? '')
  return 'html' in value ? value.html : value.map(({ html: text }) => text).join('')
}

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}
