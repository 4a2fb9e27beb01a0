import { DomUtils, parseDocument } from 'htmlparser2'
import type { PageLocals, PageName } from '../../src/views/index.ts'
import { PAGE_NAMES, SAMPLE_PAGES } from '../../src/views/samples.ts'

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

/** Every page in every mode, with little and with much to say. */
export const samplePages: SamplePage[] = PAGE_NAMES.flatMap((name) =>
  Object.values<PageLocals[PageName][]>(SAMPLE_PAGES[name])
    .flat()
    .map((locals) => ({ name, locals })),
)
