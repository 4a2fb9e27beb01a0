import type { IncomingMessage } from 'node:http'
import { uiLocalesInUrl } from './form.ts'
import { chooseLocale, type Languages } from '../views/languages.ts'

/** @param uiLocales - of the request that the page is part of. What the address asks for wins. */
export function languagesOf(req: IncomingMessage, uiLocales?: string): Languages {
  return {
    asked: uiLocalesInUrl(req.url) ?? uiLocales,
    accepted: req.headers['accept-language'],
  }
}

/**
 * The language for a page of your own, such as your login page. It is chosen as for our pages: by `ui_locales` in the address,
 * then by `uiLocales`, then by `Accept-Language`. A near language counts: `de-AT` is answered with `de`.
 *
 * @param languages - Those that your page has words in (BCP 47). The first one is the answer where none is wanted.
 * @param uiLocales - `ui_locales` of the authorization request: `interaction.params.ui_locales`. What is no text counts as absent.
 * @returns One of `languages`.
 * @example
 * const lang = languageFor(req, ['en', 'de'], interaction.params.ui_locales)
 */
export function languageFor(
  req: IncomingMessage,
  languages: readonly [string, ...string[]],
  uiLocales?: unknown,
): string {
  const asked = typeof uiLocales === 'string' ? uiLocales : undefined
  return chooseLocale(languages, languagesOf(req, asked), languages[0])
}
