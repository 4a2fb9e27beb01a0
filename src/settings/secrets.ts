/** Secret settings: sealed in the database, each for one server. */
import type { SecretBox } from '../crypto/secret-box.ts'
import type { Report, Values } from './kinds.ts'
import { settingNamed, type SettingTexts } from './table.ts'

const LOCKED =
  'this stored secret cannot be decrypted: its key is missing, or it was given for another server. Set it again'

/** The server that each secret is for. The secret is sealed for it, and deleted when it changes. */
export const GIVEN_FOR = new Map<string, (keyof SettingTexts)[]>([
  ['smtp_password', ['smtp_host', 'smtp_port']],
  // The token endpoint exchanges them for access tokens, which the mail server gets. So they are for both.
  ['smtp_oauth_client_secret', ['smtp_host', 'smtp_port', 'smtp_oauth_token_endpoint']],
  ['smtp_oauth_refresh_token', ['smtp_host', 'smtp_port', 'smtp_oauth_token_endpoint']],
])

export const givenFor = (secret: string): readonly string[] => GIVEN_FOR.get(secret) ?? []

/** So a stranger who can write to the database cannot send a secret to another server. */
function purposeOf(name: string, values: Values): string {
  const given = givenFor(name).map((each) => values[each] ?? '')
  return `${name} for ${given.join(' port ')}`
}

/** Opens the sealed values. A secret that cannot be opened is reported and left out. */
export function openAll(values: Values, box: SecretBox, report: Report) {
  const opened: Values = {}
  for (const [name, value] of Object.entries(values)) {
    const plain = isSealed(name, value) ? box.open(value, purposeOf(name, values)) : value
    if (plain === undefined) report(name, value, LOCKED)
    else opened[name] = plain
  }
  return opened
}

/** The changed values, and each secret that is for another server than before. Secrets are sealed. */
export function sealAll(changed: string[], before: Values, values: Values, box: SecretBox) {
  const sealed: Values = {}
  for (const [name, value] of Object.entries(values)) {
    const purpose = purposeOf(name, values)
    if (!changed.includes(name) && purpose === purposeOf(name, before)) continue
    sealed[name] = isSealed(name, value) ? box.seal(value, purpose) : value
  }
  return sealed
}

export function isSealed(name: string, value: string): boolean {
  return settingNamed(name)?.secret === true && value !== ''
}

/** Whether the login at the mail server, with these values, uses the secret. */
export function isOfLogin(secret: string, values: Values): boolean {
  return (secret !== 'smtp_password') === (values['smtp_auth'] === 'xoauth2')
}
