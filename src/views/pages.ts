import type { PageAddresses } from './assets.ts'
import type { Catalog } from './catalog.ts'
import type { PageLocals, PageName } from './page-locals.ts'
import { limitsText, refusalOf, waitOf } from './page-wording.ts'
import type { Templates } from './templates.ts'
import { lifetimeText, shownLink } from './wording.ts'

export function renderPage<N extends PageName>(
  { render }: Templates,
  catalog: Catalog,
  addresses: PageAddresses,
  name: N,
  locals: PageLocals[N],
): string {
  const { t, has, lang, dir } = catalog
  const limits =
    'minLength' in locals ? limitsText(locals.minLength, locals.maxLength, catalog) : undefined
  const waitMs = 'waitMs' in locals ? locals.waitMs : undefined
  return render(`pages/${name}`, {
    ...locals,
    t,
    lang,
    dir,
    ...addresses,
    page: name,
    title: t(titlesOf(name, locals).find(has) ?? `${name}.title`),
    refusal: refusalOf(name, locals, catalog, limits),
    limits,
    lifetime: 'lifetimeMs' in locals ? lifetimeText(locals.lifetimeMs, lang) : undefined,
    wait: waitMs !== undefined && waitMs > 0 ? waitOf(waitMs, lang) : undefined,
    client: 'client' in locals ? shownLink(locals.client) : undefined,
  })
}

/** The most special first. */
function titlesOf(name: PageName, locals: PageLocals[PageName]): string[] {
  const mode = `${name}.${locals.mode}`
  return 'reason' in locals ? [`${mode}.${locals.reason}.title`] : [`${mode}.title`]
}
