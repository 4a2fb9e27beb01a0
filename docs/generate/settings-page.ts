import { recommendations } from '../../src/settings/recommended.ts'
import { allSettings, type Setting } from '../../src/settings/table.ts'

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

Settings are changed while the service runs, by \`account-flows settings set\`, by \`PUT {base_url}/admin/api/settings\`, or from code with
\`createAdminClient\`. Every process that shares the database follows within 2 seconds. All values are strings.
`

const closed = allSettings.flatMap(({ name, strictest }) =>
  strictest === undefined ? [] : `\`${name}\` (\`${strictest}\`)`,
)

const recommended = recommendations.map(
  ({ name, value, reason }) => `| \`${name}\` | \`${value}\` | ${reason} |`,
)

const REST = `
## Recommended

The defaults go by the letter of the specification. Most services do better with these. \`account-flows settings apply recommended\` sets them all at
once, \`--dry-run\` shows what it would change, and \`doctor\` advises what is missing. What is stricter already stays.

| setting | recommended | so that |
| --- | --- | --- |
${recommended.join('\n')}

A verification link that is opened in another browser than the one that logged in:

| \`email_link_confirmation\` | the browser with the link | the window that logged in |
| --- | --- | --- |
| \`off\` | is sent to the client with a code. The client does not find its state there, and most clients show an error | goes on by itself, and is signed in |
| \`other_browser\` | has one button to confirm the address, and then says that it is confirmed | goes on by itself, and is signed in |
| \`always\` | the same | the same; a link that is opened in this browser asks too |

[clients.md](clients.md) shows what becomes of it with six clients that others wrote.

## Values

A duration is made of whole numbers with \`d\`, \`h\`, \`m\` and \`s\`, the largest first and without spaces: \`1h\`, \`90m\`, \`1h30m\`, \`7d\`.

A request is applied as a whole, or not at all: where one key is refused, the answer names each bad key, what was expected and what came,
and nothing changes. \`validation_min_password_length\` must not be above \`validation_max_password_length\`.

What \`GET\` answered can be sent back as it is: secrets are kept, and a setting without a stored value, sent its default, stays without one.

\`smtp_password\` is stored encrypted and shown as \`***\`; \`***\` sent back keeps it. It was given for one server: where \`smtp_host\` or \`smtp_port\` changes
without it, it is forgotten, and the answer says so. \`smtp_username\` and \`smtp_password\` count only as a pair. \`smtp_oauth_client_secret\` and
\`smtp_oauth_refresh_token\` are stored so, too, and forgotten where \`smtp_oauth_token_endpoint\` changes without them. Until \`smtp_host\`, \`smtp_port\`
and \`smtp_from\` are set, mails wait.

A stored value that is not valid, because somebody edited the database, is as if it were not there: the default is in force. Of these
settings what was in force stays, and a start takes the strictest value: ${closed.slice(0, -1).join(', ')} and
${closed.at(-1)}. The log and \`doctor\` say so, until the setting is set or unset.

A record that cannot be read (\`values\` is no object) is kept as it is. What was in force stays; a start takes the strictest of those settings, and
the default of every other; \`initialSettings\` are not stored, and changes are answered 409 \`settings_unreadable\`. Every process goes on by itself once somebody did one of these in
the database, in \`mongosh\`:

- repair it: \`db.settings.find()\` shows what is there, and
  \`db.settings.updateOne({ _id: 'settings' }, { $set: { values: { require_email_verification: 'true' } } })\` replaces it, with all values that you know;
- or begin anew: \`db.settings.deleteOne({ _id: 'settings' })\`. Every setting has its default until it is set again, and the next start stores \`initialSettings\`.
`
