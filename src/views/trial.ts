import type { Catalog } from './catalog.ts'
import { renderMail } from './mails.ts'
import type { PageLocals, PageName } from './page-locals.ts'
import { renderPage, type PageFrame } from './pages.ts'
import { SAMPLE_MAILS } from './sample-mails.ts'
import { PAGE_NAMES, SAMPLE_PAGES } from './sample-pages.ts'
import { failureOf, type Templates } from './templates.ts'

/** Renders every page and mail once, so that mistakes are found at the start. `templates` are strict. */
export function tryAll(templates: Templates, catalog: Catalog, frame: PageFrame): string[] {
  const problems = new Set<string>()

  function attempt(name: string, work: () => unknown) {
    try {
      work()
    } catch (error) {
      const { where, message } = failureOf(error)
      problems.add(`${where ?? name}: ${message}`)
    }
  }

  for (const name of PAGE_NAMES) {
    for (const locals of Object.values<PageLocals[PageName][]>(SAMPLE_PAGES[name]).flat()) {
      attempt(`pages/${name}`, () =>
        renderPage(templates, catalog, frame, name, locals, 'en', 'form'),
      )
    }
  }
  for (const [name, locals] of SAMPLE_MAILS) {
    attempt(`mails/${name}`, () => renderMail(templates, catalog, name, locals, frame.brand))
  }
  return [...problems]
}
