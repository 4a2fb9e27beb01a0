/** Texts with names of accounts and apps, which anyone may have chosen. */
import type { Catalog } from './catalog.ts'
import type { ShownApps, SignedOutApps } from './page-locals.ts'
import { allOf, displayName, isolated, numberText, timeText } from './wording.ts'

type Unlink = (name: string) => string

export function nameText({ dir }: Catalog, name: string, unlinked: Unlink = (name) => name) {
  return isolated(unlinked(displayName(name)), dir)
}

/** Two sentences about the apps, each empty without an app. */
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

interface ShownLogin {
  username: string
  clientName?: string | undefined
  /** When it began, if it still waits. */
  at?: Date | undefined
}

/** What stands beside the code of a login, one fact in a line. */
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
