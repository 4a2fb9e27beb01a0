import type { Catalog } from './catalog.ts'
import { displayName, isolated, timeText } from './wording.ts'

/** A login that waits. */
interface ShownLogin {
  username: string
  clientName?: string | undefined
  /** When it began. `undefined`: it waits no more. */
  at?: Date | undefined
}

/** What is told of a login beside its code, one fact in a line. */
export function factsOf(
  { t, lang, dir }: Catalog,
  { username, clientName, at }: ShownLogin,
  mended = (name: string) => name,
): string[] {
  const shown = (name: string) => isolated(mended(displayName(name)), dir)
  return [
    t('login.account', { account: shown(username) }),
    ...(clientName ? [t('login.app', { app: shown(clientName) })] : []),
    ...(at ? [t('login.at', { at: timeText(at, lang) })] : []),
  ]
}
