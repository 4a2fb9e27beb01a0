import { carriedBy } from '../flows/link.ts'
import type { CapturedRequest } from '../ports/index.ts'
import type { Page } from './pages.ts'

/** What a page takes over from the request that its form goes on with: where that may lead, and its languages. */
export function pageOf(captured: CapturedRequest): Pick<Page, 'formMayLeadTo' | 'uiLocales'> {
  const uiLocales = captured.params['ui_locales']
  return {
    formMayLeadTo: carriedBy(captured).redirectUri,
    uiLocales: typeof uiLocales === 'string' ? uiLocales : undefined,
  }
}
