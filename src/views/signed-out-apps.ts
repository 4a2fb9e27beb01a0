import type { Catalog } from './catalog.ts'
import type { ShownApps, SignedOutApps } from './page-locals.ts'
import { allOf, displayName, isolated } from './wording.ts'

/**
 * Two sentences about the apps. One that has no app to name is empty.
 *
 * @param unlinked - keeps a name from becoming a link.
 */
export function appsText(
  { t, lang, dir }: Catalog,
  apps: SignedOutApps | undefined,
  unlinked = (name: string) => name,
) {
  function sentence(key: string, { names, more }: ShownApps) {
    const shown = names.map((name) => isolated(unlinked(displayName(name)), dir))
    const count = new Intl.NumberFormat(lang).format(more)
    const all = more > 0 ? [...shown, t('apps.more', { count })] : shown
    return all.length > 0 ? t(key, { apps: allOf(all, lang) }) : ''
  }
  return {
    told: apps ? sentence('apps.told', apps.told) : '',
    untold: apps ? sentence('apps.untold', apps.untold) : '',
  }
}
