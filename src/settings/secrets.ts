/** Each secret is for one server. */
import { MASK, parseAll, type OpenedSettings, type WantedSettings } from './rules.ts'
import type { Report, Values } from './setting.ts'
import type { Settings, SettingTexts } from './table.ts'

/** What each secret was given for: it is sealed for that, forgotten with it, and never sent to another server. */
const GIVEN_FOR: Record<string, (keyof SettingTexts)[]> = {
  smtp_password: ['smtp_host', 'smtp_port'],
  // They are as good as what the mail server is shown for them.
  smtp_oauth_client_secret: ['smtp_host', 'smtp_port', 'smtp_oauth_token_endpoint'],
  smtp_oauth_refresh_token: ['smtp_host', 'smtp_port', 'smtp_oauth_token_endpoint'],
}
const SECRETS = Object.entries(GIVEN_FOR)

/** Names of the settings that say which server a secret is for. */
export const givenFor = (secret: string): readonly string[] => GIVEN_FOR[secret] ?? []

/** What a secret is sealed for: nobody who can write to the database gets it sent to another server. */
export function purposeOf(name: string, values: Values): string {
  const given = givenFor(name).map((each) => values[each] ?? '')
  return `${name} for ${given.join(' port ')}`
}

/** Names of what is sealed anew: given again for another server, a secret is sealed for that one. */
export function toSeal(changed: string[], values: Values): string[] {
  const moved = SECRETS.filter(
    ([secret, servers]) => secret in values && servers.some((name) => changed.includes(name)),
  )
  return [...new Set([...changed, ...moved.map(([secret]) => secret)])]
}

/** The name of a secret, and of what changed without it. */
export type Forgotten = [secret: string, moved: string[]]

/** Where the server changes without them, its secrets go. */
export function forgetSecretsOfOtherServer(
  held: OpenedSettings,
  wanted: WantedSettings,
  values: Values,
): Forgotten[] {
  return SECRETS.flatMap<Forgotten>(([secret, servers]) => {
    const moved = servers.filter((name) => values[name] !== held.plain[name])
    const isGiven = secret in wanted && wanted[secret] !== MASK
    if (moved.length === 0 || isGiven || !held.values[secret]) return []
    values[secret] = ''
    return [[secret, moved]]
  })
}

/** Whether the way of logging in that these values mean uses the secret. */
export function isOfLogin(secret: string, values: Values): boolean {
  return (secret !== 'smtp_password') === (values['smtp_auth'] === 'xoauth2')
}

/** The settings in force. Where no key opens a secret of the login, they say so. */
export function openedSettings({ values, inForce }: OpenedSettings, report?: Report): Settings {
  const locked = SECRETS.map(([secret]) => secret).find(
    (secret) => isOfLogin(secret, inForce) && secret in values && !(secret in inForce),
  )
  const smtpFault = locked && `No key of the ring opens ${locked}`
  return { ...parseAll(inForce, report), smtpFault }
}

/** Those of `wanted` that have no stored value; a secret comes with its server, or not at all. */
export function unset(wanted: WantedSettings, stored: Values): WantedSettings {
  const isForAnotherServer = (secret: string) =>
    givenFor(secret).some((name) => stored[name] !== undefined && stored[name] !== wanted[name])
  return Object.fromEntries(
    Object.entries(wanted).filter(([name]) => !(name in stored) && !isForAnotherServer(name)),
  )
}
