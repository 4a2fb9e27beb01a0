import type { Context } from 'koa'
import { readBody, type BodyRefusal } from './body.ts'

/** Names and values, each name exactly once. */
export type Fields = ReadonlyMap<string, string>

/** Nobody reads more languages. */
const MAX_UI_LOCALES = 100

/** `ui_locales` of a form or a query. `undefined`: none were asked for. */
export function uiLocalesIn(fields: Fields): string | undefined {
  return fields.get('ui_locales')?.slice(0, MAX_UI_LOCALES)
}

/** Reads a form: only `application/x-www-form-urlencoded`, every field exactly one string. */
export async function readForm(ctx: Context): Promise<Fields | BodyRefusal> {
  const body = await readBody(ctx, 'application/x-www-form-urlencoded')
  if (typeof body === 'string') return body
  const fields = 'text' in body ? parseFields(body.text) : checkFields(body.parsed)
  return fields ?? 'bad_request'
}

/**
 * Parses `application/x-www-form-urlencoded` text, a body or a query.
 *
 * @param isWanted - names for which this is false are passed over, whatever they hold.
 * @returns `undefined` when a name is repeated, or something is not percent-encoded UTF-8.
 */
export function parseFields(
  text: string,
  isWanted: (name: string) => boolean = () => true,
): Fields | undefined {
  const fields = new Map<string, string>()
  for (const pair of text.split('&')) {
    if (pair === '') continue
    const at = pair.indexOf('=')
    const name = decode(at < 0 ? pair : pair.slice(0, at))
    if (name !== undefined && !isWanted(name)) continue
    const value = decode(at < 0 ? '' : pair.slice(at + 1))
    if (name === undefined || value === undefined || fields.has(name)) return undefined
    fields.set(name, value)
  }
  return fields
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}

// What a host's parser made of operators and repeated fields is no string, and refused.
function checkFields(parsed: unknown): Fields | undefined {
  if (typeof parsed !== 'object' || parsed === null) return undefined
  const fields = new Map<string, string>()
  for (const [name, value] of Object.entries(parsed)) {
    if (typeof value !== 'string' || !value.isWellFormed()) return undefined
    fields.set(name, value)
  }
  return fields
}
