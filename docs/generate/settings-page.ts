import type { Setting } from '../../src/settings/kinds.ts'
import { recommendations } from '../../src/settings/rules.ts'
import { allSettings } from '../../src/settings/table.ts'

const HEAD = ['setting', 'type', 'default', 'bounds', 'meaning']

/** docs/settings.md: every setting of the table. */
export function settingsPage(): string {
  const rows = allSettings.map((setting) => [
    `\`${setting.name}\`${setting.secret ? ' (secret)' : ''}`,
    setting.type,
    setting.default === undefined ? 'none' : `\`${setting.default}\``,
    boundsOf(setting),
    setting.meaning,
  ])
  const table = [HEAD, HEAD.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`)
  return `${INTRODUCTION}\n${table.join('\n')}\n${REST}`
}

function boundsOf({ bounds, values, expected }: Setting<unknown>): string {
  if (values) return values.map((value) => `\`${value}\``).join(', ')
  return bounds ?? expected
}

const INTRODUCTION = `# Settings

<!-- Made by \`npm run docs\` out of src/settings/table.ts; not to be edited. -->

Settings are changed while the service runs. Every process that shares the database follows within 2 seconds. All values are strings. Change them in one of these ways:

- \`account-flows settings set\`,
- \`PUT {base_url}/admin/api/settings\`,
- from code, with \`createAdminClient\`.
`

const closed = allSettings.flatMap(({ name, strictest }) =>
  strictest === undefined ? [] : `\`${name}\` (\`${strictest}\`)`,
)

const recommended = recommendations.map(
  ({ name, value, reason }) => `| \`${name}\` | \`${value}\` | ${reason} |`,
)

const REST = `
## Recommended

The defaults follow the letter of the specification. Most services do better with these values. \`account-flows settings apply recommended\` sets them all,
and \`--dry-run\` shows what it would change. \`doctor\` advises what is missing. Stricter values stay.

| setting | recommended | so that |
| --- | --- | --- |
${recommended.join('\n')}

When a verification link is opened in another browser than the one that logged in:

| \`email_link_confirmation\` | the browser with the link | the page that logged in |
| --- | --- | --- |
| \`off\` | is sent to the client with a code. The client does not find its state there, and most clients show an error | goes on by its button |
| \`other_browser\` | verifies nothing, and shows six digits to type where the login waits | goes on once they were typed |

With \`other_browser\`, no click verifies a stranger's account ([how](decisions/README.md#0047-mailbox-and-password-meet), [what it is good for](security.md)).
Switch \`require_email_verification\` on too: while it is off, no login waits, and no link verifies an address.

[Your clients](clients.md) shows this with six published clients.

## Values

A duration is made of whole numbers with \`d\`, \`h\`, \`m\` and \`s\`, the largest first and without spaces: \`1h\`, \`90m\`, \`1h30m\`, \`7d\`.

A request is applied as a whole, or not at all. If one key is refused, nothing changes. The answer names each bad key, what was expected, and what it got.
\`validation_min_password_length\` must not be above \`validation_max_password_length\`.

You can send back what \`GET\` answered. Secrets are kept. A setting at its default stays without a stored value.

| secret | forgotten if this changes without it |
| --- | --- |
| \`smtp_password\` | \`smtp_host\` or \`smtp_port\`: it was given for one server |
| \`smtp_oauth_client_secret\`, \`smtp_oauth_refresh_token\` | \`smtp_oauth_token_endpoint\`, \`smtp_host\` or \`smtp_port\` |

Secrets are stored encrypted and shown as \`***\`; \`***\` sent back keeps one. If one is forgotten, the answer says so. \`smtp_username\` and \`smtp_password\` count only as a
pair. Mails wait until \`smtp_host\`, \`smtp_port\` and \`smtp_from\` are set.

## When the stored settings were edited by hand

**One value is not valid.** A running process keeps the previous value of the settings below, and a process that starts takes the value in brackets. All other settings have their default:

${closed.map((name) => `- ${name}`).join('\n')}

A maximum length below the minimum counts as 72. The log and \`doctor\` say so, until the setting is set or unset.

**The whole record cannot be read** (\`values\` is no object). It is kept as it is:

- The previous values stay in force. A start takes the strictest value of the settings above, and the default of every other.
- \`initialSettings\` are not stored, and changes are answered 409 \`settings_unreadable\`.

Do one of these in \`mongosh\`. Every process then goes on by itself.

- Repair it: \`db.settings.find()\` shows what is there. Replace it, with all values that you know:
  \`db.settings.updateOne({ _id: 'settings' }, { $set: { values: { require_email_verification: 'true' } } })\`
- Begin anew: \`db.settings.deleteOne({ _id: 'settings' })\`. Every setting has its default until it is set again. The next start stores \`initialSettings\`.
`
