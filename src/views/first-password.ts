import type { Catalog } from './locales.ts'

/** Words for a link that sets the first password: none says that a password changes or stays, or that only this link works. */
const INSTEAD = new Map([
  ['reset-password.title', 'accept-invitation.title'],
  ['reset-password.password', 'accept-invitation.password'],
  ['reset-password.confirm_password', 'accept-invitation.confirm_password'],
  ['reset-password.submit', 'accept-invitation.submit'],
  ['reset-password.invalid.expired.lead', 'verify-email.expired.expired.lead'],
  ['reset-password.invalid.changed.lead', 'accept-invitation.invalid.changed.lead'],
  ['reset-password.invalid.again', 'accept-invitation.invalid.again'],
  ['reset-password.done.title', 'accept-invitation.done.title'],
  ['mail.password-reset.subject', 'accept-invitation.title'],
  ['mail.password-reset.open', 'mail.invitation.open'],
  ['mail.password-reset.button', 'mail.invitation.button'],
  ['mail.password-reset.lifetime', 'mail.email-verification.lifetime'],
  ['mail.password-reset.not_you', 'mail.invitation.not_you'],
  ['mail.changed', 'mail.chosen'],
  ['mail.changed_device', 'mail.chosen_device'],
  ['mail.password-changed.subject', 'accept-invitation.done.title'],
  ['mail.password-changed.lead', 'mail.password-changed.lead_first'],
  ['mail.password-changed.lead_client', 'mail.password-changed.lead_first'],
])

export const ofFirstPassword = (catalog: Catalog): Catalog => ({
  ...catalog,
  t: (key, values) => catalog.t(INSTEAD.get(key) ?? key, values),
})
