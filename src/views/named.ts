/** Texts that name accounts and apps, as anybody may have called them. */
import type { Catalog } from './catalog.ts'
import type { ShownApps, SignedOutApps } from './page-locals.ts'
import { allOf, displayName, isolated, numberText, timeText } from './wording.ts'

/** Keeps a name from becoming a link. */
type Unlink = (name: string) => string

export function nameText({ dir }: Catalog, name: string, unlinked: Unlink = (name) => name) {
  return isolated(unlinked(displayName(name)), dir)
}

/** Two sentences about the apps. One that has no app to name is empty. */
export function appsText(catalog: Catalog, apps: SignedOutApps | undefined, unlinked?: Unlink) {
  const { t, lang } = catalog
  function sentence(key: string, { names, more }: ShownApps) {
    const shown = names.map((name) => nameText(catalog, name, unlinked))
    const all = more > 0 ? [...shown, t('apps.more', { count: numberText(more, lang) })] : shown
    return all.length > 0 ? t(key, { apps: allOf(all, lang) }) : ''
  }
  return {
    told: apps ? sentence('apps.told', apps.told) : '',
    untold: apps ? sentence('apps.untold', apps.untold) : '',
  }
}

/** A login that waits. */
interface ShownLogin {
  username: string
  clientName?: string | undefined
  /** When it began. `undefined`: it waits no more. */
  at?: Date | undefined
}

/** What is told of a login beside its code, one fact in a line. */
export function factsOf(
  catalog: Catalog,
  { username, clientName, at }: ShownLogin,
  unlinked?: Unlink,
): string[] {
  const { t, lang } = catalog
  const shown = (name: string) => nameText(catalog, name, unlinked)
  return [
    t('login.account', { account: shown(username) }),
    ...(clientName ? [t('login.app', { app: shown(clientName) })] : []),
    ...(at ? [t('login.at', { at: timeText(at, lang) })] : []),
  ]
}
