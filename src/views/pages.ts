import type { Catalog } from './catalog.ts'
import type { PageLocals, PageName } from './page-locals.ts'
import type { Templates } from './templates.ts'
import { lifetimeText, shownLink } from './wording.ts'

/** @param oauthPath - where the forms, the style sheet and the script are; may be empty. */
export function renderPage<N extends PageName>(
  { render }: Templates,
  { t, has, lang, dir }: Catalog,
  oauthPath: string,
  name: N,
  locals: PageLocals[N],
): string {
  const key = `${name}.${locals.mode}`
  const limits =
    'minLength' in locals ? { min: locals.minLength, max: locals.maxLength } : undefined
  return render(`pages/${name}`, {
    ...locals,
    t,
    lang,
    dir,
    oauthPath,
    page: name,
    title: t(has(`${key}.title`) ? `${key}.title` : `${name}.title`),
    refusal: has(`${key}.refusal`) ? t(`${key}.refusal`, limits) : undefined,
    limits,
    lifetime: 'lifetimeMs' in locals ? lifetimeText(locals.lifetimeMs, lang) : undefined,
    client: 'client' in locals ? shownLink(locals.client) : undefined,
  })
}
