import { DomUtils, parseDocument } from 'htmlparser2'
import type { PageLocals, PageName } from '../../src/views/index.ts'

export { samplePages } from '../../src/views/page-locals.ts'

export interface SamplePage {
  name: PageName
  locals: PageLocals[PageName]
}

/** A page or a mail, as its reader has it. */
export function read(html: string) {
  const document = parseDocument(html)
  const find = (tag: string) => DomUtils.getElementsByTagName(tag, document)
  const textOf = (tag: string) => DomUtils.textContent(find(tag))
  return { html, find, textOf, all: find('*'), whole: DomUtils.textContent(document) }
}

/** All elements with the names of their attributes: what must not depend on any value. */
export const skeletonOf = (html: string) =>
  read(html).all.map(({ name, attribs }) => `${name} ${Object.keys(attribs).join(' ')}`)
