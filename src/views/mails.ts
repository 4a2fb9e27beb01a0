import { fill, type Catalog, type Values } from './catalog.ts'
import type { Templates } from './templates.ts'
import { displayName, lifetimeText, timeText, unlinkable } from './wording.ts'

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
}

export interface RenderedMail {
  subject: string
  text: string
  html: string
}

export function renderMail(
  { render, read }: Templates,
  { t, lang, dir }: Catalog,
  name: MailName,
  { username, link, at, lifetimeMs, clientName = '' }: MailLocals,
): RenderedMail {
  const user = unlinkable(displayName(username))
  const client = unlinkable(displayName(clientName))
  const subject = t(`mail.${name}.subject`)
  const values: Values = {
    greeting: user ? t('mail.greeting', { user }) : t('mail.greeting_nameless'),
    lead: t(`mail.${name}.lead${client && '_client'}`, { client, at: timeText(at, lang) }),
    link,
    ...(lifetimeMs !== undefined && {
      lifetime: t(`mail.${name}.lifetime`, { lifetime: lifetimeText(lifetimeMs, lang) }),
    }),
  }
  return {
    subject,
    text: fill(read(`mails/${name}.txt`), (key) => values[key] ?? t(key)),
    html: render(`mails/${name}`, { ...values, t, lang, dir, title: subject }),
  }
}
