import { jsonOf } from '../errors.ts'

/** NUL and halves of surrogate pairs, which databases refuse or replace; and what looks like a text that was changed for that. */
const UNKEPT = /[\0\p{Surrogate}]|^\\"/u

/** A text that every database keeps as it is. Nearly always it is the text itself. */
export const keptText = (text: string): string =>
  UNKEPT.test(text) ? `\\${JSON.stringify(text)}` : text

/** The text that was kept so. */
export function textOf(kept: string): string {
  const text = kept.startsWith('\\"') ? jsonOf(kept.slice(1)) : kept
  // Nobody else's text that looks like one.
  return typeof text === 'string' && keptText(text) === kept ? text : kept
}

const NO_JSON = Symbol('no JSON')

/** What a database keeps as the text of some JSON. A symbol where it is none: `storedOf` then says that the record is damaged. */
export const storedJson = (text: string): unknown => jsonOf(text) ?? NO_JSON
