import { fill, type Catalog, type Values } from './catalog.ts'
import { deviceOf } from './device.ts'
import type { Templates } from './templates.ts'
import { displayName, eitherOf, lifetimeText, timeText, unlinkable, wrapped } from './wording.ts'

export type MailName = 'password-reset' | 'email-verification' | 'password-changed' | 'test'

export interface MailLocals {
  username: string
  /** An http or https address. */
  link: string
  /** When it was asked for, or when the password was changed. */
  at: Date
  /** `undefined`: the link does not expire. */
  lifetimeMs?: number
  clientName?: string
  /** Of whoever asked for it, or changed the password. Told only as far as it is that of a well-known browser. */
  userAgent?: string | undefined
  /** An admin has it sent: nobody asked for it in a browser of the reader's. */
  isByAdmin?: boolean
}

export interface RenderedMail {
  subject: string
  text: string
  html: string
}

/** The token of `link` is once in the text, on a line of its own, and once in the HTML, behind the button. */
export function renderMail(
  { render, read }: Templates,
  catalog: Catalog,
  name: MailName,
  locals: MailLocals,
): RenderedMail {
  const { t, lang, dir } = catalog
  const values = valuesOf(catalog, name, locals)
  const word = (key: string) => values[key] ?? t(`mail.${name}.${key}`)
  return {
    subject: word('subject'),
    text: wrapped(fill(read(`mails/${name}.txt`), word)),
    html: render(`mails/${name}`, { word, t, lang, dir }),
  }
}

/** What the templates say by other words than those of the catalog, or by words with something to fill in. */
function valuesOf(
  { t, lang }: Catalog,
  name: MailName,
  locals: MailLocals,
): Record<string, string> {
  const { username, link, at, lifetimeMs } = locals
  const of = (key: string, values: Values) => t(`mail.${name}.${key}`, values)
  const user = unlinkable(displayName(username))
  const client = unlinkable(displayName(locals.clientName ?? ''))
  const told = lifetimeMs === undefined ? {} : { lifetime: lifetimeText(lifetimeMs, lang) }
  const device = locals.isByAdmin ? undefined : deviceOf(locals.userAgent ?? '')
  const done = name === 'password-changed' ? 'mail.changed' : 'mail.asked'
  return {
    greeting: user ? t('mail.greeting', { user }) : t('mail.greeting_nameless'),
    lead: of(`lead${locals.isByAdmin ? '_admin' : client && '_client'}`, { client }),
    preheader: of('preheader', told),
    link,
    leads_to: URL.canParse(link)
      ? t('mail.leads_to', { host: unlinkable(new URL(link).host) })
      : '',
    ...(lifetimeMs !== undefined && { lifetime: of('lifetime', told) }),
    when: device
      ? t(`${done}_device`, { at: timeText(at, lang), device: deviceText(device) })
      : t(done, { at: timeText(at, lang) }),
  }

  function deviceText({ browser, systems }: NonNullable<typeof device>) {
    return t('mail.device', { browser, system: eitherOf(systems, lang) })
  }
}
