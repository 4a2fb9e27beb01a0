import type { PageAddresses } from './assets.ts'
import type { Catalog } from './catalog.ts'
import { renderMail } from './mails.ts'
import type { PageLocals, PageName } from './page-locals.ts'
import { renderPage } from './pages.ts'
import { SAMPLE_MAILS, SAMPLE_PAGES } from './sample-locals.ts'
import { failureOf, type Templates } from './templates.ts'

/** What goes wrong where every page and mail is rendered once, so that it is told at the start. `templates` are strict. */
export function tryAll(templates: Templates, catalog: Catalog, addresses: PageAddresses): string[] {
  const problems = new Set<string>()

  function attempt(name: string, work: () => unknown) {
    try {
      work()
    } catch (error) {
      const { where, message } = failureOf(error)
      problems.add(`${where ?? name}: ${message}`)
    }
  }

  function tryPage<N extends PageName>(name: N, samples: Record<string, PageLocals[N][]>) {
    for (const locals of Object.values(samples).flat()) {
      attempt(`pages/${name}`, () => renderPage(templates, catalog, addresses, name, locals))
    }
  }

  tryPage('forgot-password', SAMPLE_PAGES['forgot-password'])
  tryPage('reset-password', SAMPLE_PAGES['reset-password'])
  tryPage('verify-email', SAMPLE_PAGES['verify-email'])
  tryPage('error', SAMPLE_PAGES.error)
  for (const [name, locals] of SAMPLE_MAILS) {
    attempt(`mails/${name}`, () => renderMail(templates, catalog, name, locals))
  }
  return [...problems]
}
