import type { Catalog } from './catalog.ts'
import { deviceText } from './device.ts'
import type { ShownClient, WaitingElsewhere } from './page-locals.ts'
import { displayName, isolated, timeText } from './wording.ts'

/** What is told of a login to whoever may let its window go on, one fact in a line. `undefined`: there is none. */
export function factsOf(
  catalog: Catalog,
  { waiting, client }: { waiting?: WaitingElsewhere | undefined; client?: ShownClient | undefined },
): string[] | undefined {
  if (!waiting) return undefined
  const { t, lang, dir } = catalog
  const shown = (name: string) => isolated(displayName(name), dir)
  const word = (key: string, value: string) => t(`verify-email.confirm.${key}`, { [key]: value })
  const device = deviceText(catalog, waiting.userAgent)
  return [
    word('account', shown(waiting.username)),
    ...(client ? [word('app', shown(client.clientName))] : []),
    device === undefined ? t('verify-email.confirm.no_device') : word('device', device),
    word('at', timeText(waiting.at, lang)),
  ]
}
